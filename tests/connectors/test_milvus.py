"""Milvus against a real server: 2.3.5, as its wheel carries it."""

from __future__ import annotations

import logging
import pickle
import socket
import ssl
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

from connectors.conftest import MilvusServer
from connectors.faults import LOOPBACK, PROMPT, answering, free_port, proxy, silent
from ringtrue.errors import AccessDenied, InputError, MissingInput, TimedOut, Unreachable
from ringtrue.extras import install_command
from ringtrue.retrieve.connectors import connect
from ringtrue.retrieve.connectors.milvus import Milvus
from ringtrue.retrieve.encode import encoder
from ringtrue.testing.retrievers import ConnectorSuite, raises

pymilvus = pytest.importorskip("pymilvus", reason="MILVUS IS NOT TESTED: pip install pymilvus")

TOKEN = "RINGTRUE_TEST_MILVUS"
GUEST = "guest:Geheim-7731"
ODD = 'it\'s "odd" \\ n\no\u202e 🏊 {x} %s'
HOTELS = (
    ("h1", "A quiet house with a heated pool and a spa.", "Bern", 4),
    ("h2", "Pool Palace: rooms with a view of the garden.", "Bern", 3),
    ("h3", "The pool on the roof is open all year.", "Basel", 3),
    ("h4", "Mountain hut with a wood stove and a sauna.", ODD, 2),
    ("h5", "A garden pool, shared with the neighbours.", "Basel", 2),
)
PASSAGES = (
    ("h1", "a", "a heated pool"),
    ("h1", "b", "the pool of the house"),
    ("h1", "c", "a pool and a spa"),
    ("h1", "d", "pool"),
    ("h3", "a", "the roof is open all year"),
    ("h5", "a", "a garden for everybody"),
)


def _collection(client: Any, name: str, metric: str, rows: list[dict[str, Any]], *, dynamic: bool = True) -> None:
    types = pymilvus.DataType
    schema = client.create_schema(auto_id=False, enable_dynamic_field=dynamic)
    schema.add_field("code", types.VARCHAR, is_primary=True, max_length=64)
    schema.add_field("place", types.FLOAT_VECTOR, dim=len(rows[0]["place"]))
    schema.add_field("city", types.VARCHAR, max_length=200)
    schema.add_field("stars", types.INT64)
    indexes = client.prepare_index_params()
    indexes.add_index("place", index_type="FLAT", metric_type=metric)
    client.create_collection(name, schema=schema, index_params=indexes, consistency_level="Strong")
    client.insert(name, rows)


@pytest.fixture(scope="session")
def server(milvus: MilvusServer) -> Iterator[MilvusServer]:
    """The server with hotels by three metrics, passages, and a user without rights."""
    vectors = encoder().encode([text for _, text, _, _ in HOTELS]).tolist()
    hotels = [
        # The length of the vectors tells cosine and inner product apart.
        {
            "code": code,
            "place": (np.array(vector) * 2).tolist(),
            "city": city,
            "stars": stars,
            "town": city,
            "rooms": stars * 10,
        }
        for (code, _, city, stars), vector in zip(HOTELS, vectors, strict=True)
    ]
    strict = [{key: row[key] for key in ("code", "place", "city", "stars")} for row in hotels]
    passages = [
        {"code": f"{hotel}/{part}", "place": vector, "city": "", "stars": 0, "hotel": hotel}
        for (hotel, part, _), vector in zip(PASSAGES, encoder().encode([text for *_, text in PASSAGES]).tolist(), strict=True)
    ]
    client = pymilvus.MilvusClient(milvus.uri, token=milvus.token, timeout=30)
    wanted = [
        ("hotels", "COSINE", hotels, True),
        ("hotels_l2", "L2", strict, False),
        ("hotels_ip", "IP", hotels, True),
        ("passages", "COSINE", passages, True),
        ("small", "COSINE", [{"code": "x", "place": [1.0, 2.0], "city": "", "stars": 0}], True),
    ]
    with ThreadPoolExecutor(len(wanted)) as pool:
        list(pool.map(lambda item: _collection(client, *item[:3], dynamic=item[3]), wanted))
    client.create_user(*GUEST.split(":"))
    yield milvus
    client.close()


@pytest.fixture(autouse=True)
def _token(server: MilvusServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(TOKEN, server.token)


@pytest.fixture
def hotels(server: MilvusServer) -> Iterator[Milvus]:
    connector = Milvus(uri=server.uri, token_env=TOKEN, collection="hotels", retries=0)
    yield connector
    connector.close()


def ids(connector: Milvus, text: str = "pool", **options: Any) -> list[str]:
    return [hit.doc_id for hit in connector.search(text, **options)]


class TestMilvus(ConnectorSuite):
    SECRETS: ClassVar[tuple[str, ...]] = ("Milvus)", "root:", "wrong-8812", LOOPBACK, "http://")

    @pytest.fixture(autouse=True)
    def _server(self, server: MilvusServer, hotels: Milvus, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
        self.server, self.hotels, self.patch = server, hotels, monkeypatch
        with ExitStack() as self.stack:
            yield

    def _with(self, **settings: Any) -> Milvus:
        connector = replace(self.hotels, **settings)
        self.stack.callback(connector.close)
        return connector

    def make(self) -> Milvus:
        return self.hotels

    def wrong_credentials(self) -> Milvus:
        self.patch.setenv(TOKEN, "root:wrong-8812")
        return self.hotels

    def nobody_there(self) -> Milvus:
        return self._with(uri=f"http://{LOOPBACK}:{free_port()}")

    def gone_mid_query(self) -> Milvus:
        between = self.stack.enter_context(proxy(self.server.port))
        connector = self._with(uri=f"http://{LOOPBACK}:{between.port}")
        assert connector.search("pool")
        between.cut_answer_after(5)
        return connector

    def too_slow(self) -> Milvus:
        between = self.stack.enter_context(proxy(self.server.port))
        connector = self._with(uri=f"http://{LOOPBACK}:{between.port}")
        assert connector.search("pool")
        object.__setattr__(connector, "timeout", 0.3)
        between.hang()
        return connector

    def malformed(self) -> Milvus:
        return self._with(id="number")  # a field that records may have, and that none has

    def twice(self) -> Milvus:
        return self._with(collection="passages", id="hotel")

    def few(self) -> Any:
        return self.hotels, "pool", len(HOTELS)

    def fails_once(self) -> Milvus:
        between = self.stack.enter_context(proxy(self.server.port))
        between.cut()

        def restore() -> None:
            while between.connections == 0:
                time.sleep(0.01)
            between.restore()

        threading.Thread(target=restore, daemon=True).start()
        return self._with(uri=f"http://{LOOPBACK}:{between.port}", retries=2)


# Scores


def test_scores_are_higher_for_the_better_whatever_the_metric(hotels: Milvus) -> None:
    asked = encoder().encode(["somewhere to swim"])[0]
    cosine = encoder().encode([text for _, text, _, _ in HOTELS]) @ asked
    wanted = {
        "hotels": cosine,
        "hotels_ip": 2 * cosine,
        "hotels_l2": -(1 + 4 - 4 * cosine),  # the squared distance of vectors of the lengths 1 and 2
    }
    for collection, scores in wanted.items():
        connector = replace(hotels, collection=collection)
        found = {hit.doc_id: hit.score for hit in connector.search("somewhere to swim")}
        connector.close()
        assert found == pytest.approx(dict(zip([code for code, *_ in HOTELS], scores.tolist(), strict=True)), abs=1e-4)
        assert list(found.values()) == sorted(found.values(), reverse=True)


def test_passages_collapse_to_the_best_of_each_document(hotels: Milvus) -> None:
    connector = replace(hotels, collection="passages", id="hotel", chunk="code")
    hits = connector.search("pool", k=3)
    connector.close()
    assert {hit.doc_id for hit in hits} == {"h1", "h3", "h5"}, "four passages of h1 took the places of other documents"
    assert (hits[0].doc_id, hits[0].chunk) == ("h1", "h1/d")


def test_what_was_just_written_is_found(server: MilvusServer, hotels: Milvus) -> None:
    client = pymilvus.MilvusClient(server.uri, token=server.token, timeout=10)
    vector = encoder().encode(["an igloo made of ice"])[0].tolist()
    try:
        client.insert("hotels", [{"code": "new", "place": vector, "city": "Nuuk", "stars": 1}])
        assert ids(hotels, "an igloo made of ice", k=1) == ["new"]
    finally:
        client.delete("hotels", ids=["new"])
        client.close()
    assert "new" not in ids(hotels, "an igloo made of ice")


# Scope


@pytest.mark.parametrize(
    ("scope", "wanted"),
    [
        ({"city": "Basel"}, {"h3", "h5"}),
        ({"city": "Basel", "stars": "2"}, {"h5"}),
        ({"town": "Bern"}, {"h1", "h2"}),
        ({"rooms": "30"}, {"h2", "h3"}),
        ({"city": ODD}, {"h4"}),
        ({"town": ODD}, {"h4"}),
        ({"city": '" or city != "'}, set()),
        ({"city": "\ud800\0"}, set()),
        ({'town"] == "x" or $meta["town': "Bern"}, set()),
        ({"nowhere": "Bern"}, set()),
    ],
    ids=["text", "number", "open", "open-number", "odd", "open-odd", "injected", "surrogate", "injected-name", "unknown"],
)
def test_a_scope_admits_only_records_with_these_values(hotels: Milvus, scope: dict[str, str], wanted: set[str]) -> None:
    assert set(ids(hotels, "pool", scope=scope)) == wanted


def test_a_scope_that_the_schema_does_not_have_is_an_error(hotels: Milvus) -> None:
    closed = replace(hotels, collection="hotels_l2")
    for scope, said in (({"town": "Bern"}, "'city'"), ({"stars": "many"}, "many")):
        with raises(InputError) as messages:
            closed.search("pool", scope=scope)
        assert said in messages[0] or said in messages[0].replace('"', "'")
    closed.close()


# Settings


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"uri": None}, "http://"),
        ({"uri": "hotels.db"}, "http://"),
        ({"collection": "a b"}, "a b"),
        ({"vector": "place; drop"}, "vector"),
        ({"id": ""}, "id=''"),
        ({"chunk": 3}, "chunk=3"),
        ({"consistency": "strong"}, "'Strong'"),
        ({"params": [1]}, "params"),
        ({"retries": -1}, "retries"),
    ],
    ids=["no-uri", "file", "collection", "vector", "id", "chunk", "consistency", "params", "retries"],
)
def test_a_wrong_setting_is_named(settings: dict[str, Any], said: str) -> None:
    with raises(InputError) as messages:
        Milvus(**({"uri": "http://localhost:1", "collection": "hotels"} | settings))
    assert said in messages[0]


@pytest.mark.parametrize(
    ("settings", "kind", "said"),
    [
        ({"collection": "motels"}, MissingInput, "motels"),
        ({"database": "elsewhere"}, MissingInput, "elsewhere"),
        ({"vector": "city"}, InputError, "place"),
        ({"collection": "hotels_l2", "id": "cod"}, MissingInput, "'code'"),
        ({"collection": "small"}, InputError, "384"),
    ],
    ids=["collection", "database", "vector", "id", "size"],
)
def test_what_the_server_does_not_have_is_named(
    hotels: Milvus, settings: dict[str, str], kind: type[Exception], said: str
) -> None:
    connector = replace(hotels, **settings)
    with raises(kind) as messages:
        connector.search("pool")
    connector.close()
    assert said in messages[0]


def test_a_collection_that_is_not_loaded_is_named(server: MilvusServer, hotels: Milvus) -> None:
    client = pymilvus.MilvusClient(server.uri, token=server.token, timeout=30)
    client.release_collection("hotels_ip")
    connector = replace(hotels, collection="hotels_ip")
    try:
        with raises(InputError) as messages:
            connector.search("pool")
        assert "not loaded" in messages[0]
    finally:
        client.load_collection("hotels_ip")
        client.close()
    assert ids(connector), "loaded again, it is not found again"
    connector.close()


def test_more_hits_than_milvus_returns_are_refused(hotels: Milvus) -> None:
    with raises(InputError) as messages:
        hotels.search("pool", k=16_385)
    assert "16384" in messages[0]


def test_without_its_library_the_extra_is_named(hotels: Milvus, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pymilvus", None)
    with raises(MissingInput) as messages:
        hotels.search("pool")
    assert install_command("milvus") in messages[0]


def test_settings_from_a_dict(server: MilvusServer) -> None:
    settings = {
        "kind": "milvus",
        "uri": server.uri,
        "token_env": TOKEN,
        "collection": "hotels",
        "id": "code",
        "vector": "place",
    }
    connector = connect(settings, name="shop")
    assert connector.search("pool", k=2)[0].channels == {"shop": 1}
    for word in (LOOPBACK, str(server.port), server.token):
        assert word not in repr(connector)
    connector.close()  # type: ignore[attr-defined]
    with raises(InputError) as messages:
        connect({"kind": "milvus", "uri": server.uri})
    assert "collection" in messages[0]


# Access and connections


def test_a_user_without_rights_is_denied_access(hotels: Milvus, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(TOKEN, GUEST)
    with raises(AccessDenied):
        hotels.search("pool")


def test_no_credentials_are_denied_access(hotels: Milvus) -> None:
    with raises(AccessDenied):
        replace(hotels, token_env=None).search("pool")


def test_a_connection_is_kept_and_opened_again_when_it_died(server: MilvusServer, hotels: Milvus) -> None:
    with proxy(server.port) as between:
        connector = replace(hotels, uri=f"http://{LOOPBACK}:{between.port}", retries=2)
        assert ids(connector) == ids(connector)
        assert between.connections == 1
        between.cut()
        between.restore()
        assert ids(connector)
        connector.close()


def test_threads_share_a_connector(hotels: Milvus) -> None:
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda _: ids(hotels), range(8)))
    assert all(answer == found[0] for answer in found)


def test_a_copy_for_another_process_opens_its_own_connection(hotels: Milvus) -> None:
    first = ids(hotels)
    copy = pickle.loads(pickle.dumps(hotels))
    assert copy == hotels
    assert not any(name.startswith("_kept") for name in vars(copy))
    assert ids(copy) == first
    copy.close()


def test_a_server_that_accepts_and_is_silent_times_out(hotels: Milvus) -> None:
    with silent() as port:
        start = time.monotonic()
        with raises(TimedOut):
            replace(hotels, uri=f"http://{LOOPBACK}:{port}", timeout=0.3).search("pool")
        assert time.monotonic() - start < PROMPT


def test_a_port_of_something_else_is_unreachable(hotels: Milvus) -> None:
    with answering(["hello"]) as other, raises(Unreachable):
        replace(hotels, uri=other.url).search("pool")


def test_neither_traceback_nor_log_shows_the_address(
    hotels: Milvus, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    port = free_port()
    kept: list[str] = []

    class Keeper(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            kept.append(self.format(record))

    keeper = Keeper()
    logging.getLogger("pymilvus").addHandler(keeper)
    try:
        with pytest.raises(Unreachable) as caught:
            replace(hotels, uri=f"http://{LOOPBACK}:{port}").search("pool")
        monkeypatch.setenv(TOKEN, "root:wrong-8812")
        with pytest.raises(AccessDenied) as denied:
            hotels.search("pool")
        shown = "".join(traceback.format_exception(caught.value) + traceback.format_exception(denied.value))
        logging.getLogger("pymilvus.decorators").error("somebody else's line")
    finally:
        logging.getLogger("pymilvus").removeHandler(keeper)
    out, err = capfd.readouterr()
    for word in (LOOPBACK, str(port), "wrong-8812"):
        assert word not in shown + out + err + "".join(kept)
    assert kept == ["somebody else's line"], "the log of others was silenced too"


def test_tls_is_verified(hotels: Milvus, tmp_path: Path) -> None:
    """No TLS server comes with the wheel's settings: the handshake itself is watched."""
    from connectors.test_postgres import certificate

    context = certificate(tmp_path)
    context.set_alpn_protocols(["h2"])
    assert _handshake(hotels, context, None) is False, "a certificate nobody signed was trusted"
    assert _handshake(hotels, context, str(tmp_path / "ca.pem")) is True


def _handshake(hotels: Milvus, context: ssl.SSLContext, ca_file: str | None) -> bool:
    """Return whether a client goes on after it has seen the certificate."""
    listener = socket.create_server((LOOPBACK, 0))
    went_on: list[bool] = []

    def serve() -> None:
        with suppress(OSError):
            client, _ = listener.accept()
            with client, suppress(OSError), context.wrap_socket(client, server_side=True) as secured:
                went_on.append(secured.recv(1) != b"")

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    with listener:
        with raises(Unreachable):
            uri = f"https://localhost:{listener.getsockname()[1]}"
            replace(hotels, uri=uri, ca_file=ca_file).search("pool")
        thread.join(30)
    return went_on == [True]


def test_the_example_runs() -> None:
    example = Path(__file__).parents[2] / "examples" / "connect" / "with_milvus.py"
    done = subprocess.run([sys.executable, example], capture_output=True, text=True, timeout=180)
    assert done.returncode == 0, done.stderr
    assert "lakeside" in done.stdout
