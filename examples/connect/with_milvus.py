"""Search a collection of a Milvus server. Run it: python examples/connect/with_milvus.py

The same connection in ringtrue.toml, for `ringtrue search "somewhere to swim" --retriever "connect('hotels')"`:

    [connections.hotels]
    kind = "milvus"
    uri = "http://localhost:19530"
    collection = "hotels"
    token_env = "MILVUS_TOKEN"          # the name of an environment variable, never the value

This example starts a server of its own, from the package milvus, and stops it at the end. It takes some 20 seconds.
"""

import os
import socket
import tempfile
from pathlib import Path

from milvus import MilvusServer, MilvusServerConfig
from pymilvus import DataType, MilvusClient

from ringtrue.retrieve.connectors import connect
from ringtrue.retrieve.encode import encoder

HOTELS = {
    "lakeside": ("Swim in the lake before breakfast, or in the heated pool.", "Thun"),
    "old-mill": ("Rooms above a quiet stream, with a library and open fires.", "Thun"),
    "roof-garden": ("A pool on the roof, open until midnight.", "Basel"),
    "station": ("Two minutes from the trains. Single rooms, breakfast from five.", "Basel"),
}


def fill(uri: str) -> None:
    vectors = encoder().encode([about for about, _ in HOTELS.values()])
    client = MilvusClient(uri, timeout=30)
    schema = client.create_schema(auto_id=False, enable_dynamic_field=True)
    schema.add_field("hotel", DataType.VARCHAR, is_primary=True, max_length=64)
    schema.add_field("embedding", DataType.FLOAT_VECTOR, dim=vectors.shape[1])
    index = client.prepare_index_params()
    index.add_index("embedding", index_type="HNSW", metric_type="COSINE", params={"M": 16, "efConstruction": 64})
    client.create_collection("hotels", schema=schema, index_params=index)
    rows = zip(HOTELS.items(), vectors.tolist(), strict=True)
    client.insert("hotels", [{"hotel": hotel, "embedding": vector, "town": town} for (hotel, (_, town)), vector in rows])
    client.close()


def ask(uri: str) -> None:
    hotels = connect({"kind": "milvus", "uri": uri, "collection": "hotels", "params": {"ef": 64}}, name="hotels")
    for scope in (None, {"town": "Basel"}):
        print(f"somewhere to swim, {scope or 'anywhere'}:")
        for hit in hotels.search("somewhere to swim", k=3, scope=scope):
            print(f"  {hit.score:6.3f}  {hit.doc_id}")


def free_ports(count: int) -> list[int]:
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        # Milvus and the etcd inside it take fixed ports unless told otherwise; another one may be running here.
        config = MilvusServerConfig()
        names = [name for name in config.configurable_items if name.endswith("_port")]
        client, peer, web, *ports = free_ports(len(names) + 3)
        etcd = Path(folder) / "etcd.yaml"
        etcd.write_text(
            f"listen-client-urls: http://127.0.0.1:{client}\nadvertise-client-urls: http://127.0.0.1:{client}\n"
            f"listen-peer-urls: http://127.0.0.1:{peer}\ninitial-advertise-peer-urls: http://127.0.0.1:{peer}\n"
            f"initial-cluster: default=http://127.0.0.1:{peer}\n"
        )
        os.environ["ETCD_CONFIG_PATH"] = str(etcd)
        server = MilvusServer(config, data_dir=folder, **dict(zip(names, ports, strict=True)))
        server.webservice_port = web
        try:
            server.start()
            uri = f"http://127.0.0.1:{server.listen_port}"
            fill(uri)
            ask(uri)
        finally:
            server.stop()


if __name__ == "__main__":
    main()
