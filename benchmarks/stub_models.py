"""A stub of the model APIs that coding agents speak, on 127.0.0.1: Anthropic Messages, OpenAI Responses, Chat Completions.

It keeps every request, so a run shows what the model was really shown, and answers as ``Script`` says: with a text, or with one
use of a tool and then a text that quotes what the tool gave. Requests without tools (titles, topics) are answered with ``ok``.
"""

from __future__ import annotations

import gzip
import json
import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Record = dict[str, Any]
POINTER = re.compile(r"<memory-context.*?</memory-context>", re.DOTALL)
PATH = re.compile(r'path="([^"]+)"')


@dataclass(frozen=True)
class Script:
    """What the model does: say ``text``, or use a tool on the first memory it was shown, and then quote the result.

    ``tool`` makes the use of a tool from the path of that memory: its name and its input.
    """

    text: str = "Understood."
    tool: Callable[[str], tuple[str, Record]] | None = None


def shown_memory(body: Record) -> str:
    """Return the path of the first memory in the last block of pointers that a request holds, or an empty text."""
    text = json.dumps(body, ensure_ascii=False).replace('\\"', '"')
    for block in reversed(POINTER.findall(text)):
        found = PATH.search(block)
        if found:
            return found[1]
    return ""


def tool_names(body: Record) -> list[str]:
    """Return the names of the tools in a request; those of a namespace have it before them (``mcp__x::name``)."""
    names = []
    for tool in body.get("tools") or []:
        name = tool.get("name") or tool.get("function", {}).get("name") or tool.get("type")
        names += [f"{name}::{inner.get('name')}" for inner in tool.get("tools") or []] or [str(name)]
    return names


class StubModels:
    """A running stub: ``port``, the ``requests`` so far with their API, and the ``script`` it follows."""

    def __init__(self) -> None:
        self.script = Script()
        self.requests: list[tuple[str, Record]] = []
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self.port = int(self._server.server_address[1])
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def __enter__(self) -> StubModels:
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def decide(self, body: Record, result: str | None) -> str | tuple[str, Record]:
        """Return a text, or the name and the input of a tool; ``result`` is what a tool gave last."""
        if not body.get("tools"):
            return "ok"
        if result is not None:
            return f"The stored note says: {result[:1500]}"
        path = shown_memory(body) if self.script.tool is not None else ""
        return self.script.tool(path) if self.script.tool is not None and path else self.script.text

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        stub = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_: object) -> None:
                pass

            def do_HEAD(self) -> None:
                self.send_response(200)
                self.send_header("content-length", "0")
                self.end_headers()

            def do_GET(self) -> None:
                model = {"id": "stub", "object": "model", "type": "model", "display_name": "stub"}
                self._json({"data": [model], "models": [], "has_more": False})

            def do_POST(self) -> None:
                body, path = self._body(), self.path.partition("?")[0]
                for end, answer in _APIS.items():
                    if path.endswith(end):
                        stub.requests.append((end, body))
                        said, events = answer(stub, body)
                        if body.get("stream"):
                            self._events(events)
                        else:
                            self._json(said)
                        return
                self._json({"input_tokens": 100} if path.endswith("count_tokens") else {})

            def _body(self) -> Record:
                if self.headers.get("transfer-encoding", "").lower() == "chunked":
                    raw = b"".join(self._chunks())
                else:
                    raw = self.rfile.read(int(self.headers.get("content-length") or 0))
                if self.headers.get("content-encoding") == "gzip":
                    raw = gzip.decompress(raw)
                try:
                    found = json.loads(raw or b"{}")
                except ValueError:
                    found = {}
                return found if isinstance(found, dict) else {}

            def _chunks(self) -> Iterator[bytes]:
                while size := int(self.rfile.readline().split(b";")[0], 16):
                    yield self.rfile.read(size)
                    self.rfile.readline()
                self.rfile.readline()

            def _json(self, record: Any) -> None:
                data = json.dumps(record).encode()
                self.send_response(200)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def _events(self, events: Sequence[tuple[str, Any]]) -> None:
                self.send_response(200)
                self.send_header("content-type", "text/event-stream")
                self.send_header("connection", "close")
                self.end_headers()
                for name, data in events:
                    text = data if isinstance(data, str) else json.dumps(data)
                    self.wfile.write((f"event: {name}\n" if name else "").encode() + f"data: {text}\n\n".encode())
                    self.wfile.flush()
                self.close_connection = True

        return Handler


Answer = tuple[Record, Sequence[tuple[str, Any]]]
"""A whole answer, and the same as events."""


def _messages(stub: StubModels, body: Record) -> Answer:
    last = [one for one in body["messages"] if one["role"] != "system"][-1]["content"]
    results = [block for block in last if block.get("type") == "tool_result"] if isinstance(last, list) else []
    said = stub.decide(body, "".join(_text(block["content"]) for block in results) if results else None)
    base: Record = {"id": _id("msg"), "type": "message", "role": "assistant", "model": body.get("model", "stub")}
    base |= {"stop_sequence": None, "usage": {"input_tokens": 10, "output_tokens": 5}}
    if isinstance(said, str):
        block: Record = {"type": "text", "text": said}
        empty, delta, stop = {"type": "text", "text": ""}, {"type": "text_delta", "text": said}, "end_turn"
    else:
        block = {"type": "tool_use", "id": _id("toolu"), "name": said[0], "input": said[1]}
        empty, stop = {**block, "input": {}}, "tool_use"
        delta = {"type": "input_json_delta", "partial_json": json.dumps(said[1])}
    events: list[Record] = [
        {"type": "message_start", "message": {**base, "content": [], "stop_reason": None}},
        {"type": "content_block_start", "index": 0, "content_block": empty},
        {"type": "content_block_delta", "index": 0, "delta": delta},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": stop, "stop_sequence": None}, "usage": {"output_tokens": 5}},
        {"type": "message_stop"},
    ]
    return {**base, "content": [block], "stop_reason": stop}, [(event["type"], event) for event in events]


def _responses(stub: StubModels, body: Record) -> Answer:
    given = body.get("input")
    last = given[-1] if isinstance(given, list) and given else {}
    said = stub.decide(body, _text(last.get("output")) if str(last.get("type", "")).endswith("_output") else None)
    if isinstance(said, str):
        content = [{"type": "output_text", "text": said, "annotations": []}]
        item: Record = {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": content}
    else:
        space, _, name = said[0].rpartition("::")
        item = {"type": "function_call", "id": "fc_1", "call_id": _id("call"), "name": name, "status": "completed"}
        item |= {"arguments": json.dumps(said[1]), **({"namespace": space} if space else {})}
    usage = {"input_tokens": 10, "input_tokens_details": {"cached_tokens": 0}, "output_tokens": 5, "total_tokens": 15}
    usage["output_tokens_details"] = {"reasoning_tokens": 0}
    whole = {"id": _id("resp"), "status": "completed", "output": [item], "usage": usage}
    events: list[Record] = [
        {"type": "response.created", "response": {"id": whole["id"], "status": "in_progress", "output": []}},
        {"type": "response.output_item.added", "output_index": 0, "item": item},
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        {"type": "response.completed", "response": whole},
    ]
    return whole, [(event["type"], event) for event in events]


def _chat(stub: StubModels, body: Record) -> Answer:
    last = body["messages"][-1]
    said = stub.decide(body, _text(last.get("content")) if last.get("role") == "tool" else None)
    if isinstance(said, str):
        message: Record = {"role": "assistant", "content": said}
    else:
        call = {"name": said[0], "arguments": json.dumps(said[1])}
        message = {"role": "assistant", "content": None}
        message["tool_calls"] = [{"index": 0, "id": _id("call"), "type": "function", "function": call}]
    reason = "stop" if isinstance(said, str) else "tool_calls"
    usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
    base: Record = {"id": _id("chatcmpl"), "created": int(time.time()), "model": body.get("model", "stub")}
    whole = {"object": "chat.completion", "choices": [{"index": 0, "message": message, "finish_reason": reason}]}
    chunk = {**base, "object": "chat.completion.chunk"}
    first = {**chunk, "choices": [{"index": 0, "delta": message, "finish_reason": None}]}
    end = {**chunk, "choices": [{"index": 0, "delta": {}, "finish_reason": reason}], "usage": usage}
    return {**base, **whole, "usage": usage}, [("", first), ("", end), ("", "[DONE]")]


_APIS: Mapping[str, Callable[[StubModels, Record], Answer]] = {
    "/messages": _messages,
    "/responses": _responses,
    "/chat/completions": _chat,
}


def _text(content: Any) -> str:
    if isinstance(content, list):
        return "".join(str(part.get("text", "")) for part in content if isinstance(part, dict))
    return content if isinstance(content, str) else json.dumps(content)


def _id(kind: str) -> str:
    return f"{kind}_{time.time_ns()}"
