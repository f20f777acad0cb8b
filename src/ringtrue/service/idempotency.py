"""``Idempotency-Key`` on writes (V-1): sent twice, carried out once, answered twice.

The answer is kept with the caller's project for two days. The same key with another request is an error, and so is a second
request while the first is still at work.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ringtrue.service.auth import Caller, caller_of
from ringtrue.service.errors import Refused, answer
from ringtrue.service.limits import UNSAFE, replayed
from ringtrue.store import Reply, timestamp

HEADER = "idempotency-key"
LONGEST = 255
ABANDONED = timedelta(minutes=10)
"""A request without an answer after so long died with its server; its key may be used again."""
NOT_KEPT = {401, 403, 408, 409, 413, 429}
"""Answers that say nothing about the request itself."""
SECRETS = "/v1/keys"
"""Their answers hold tokens, which are written down nowhere."""
KEPT_HEADERS = (b"content-type", b"location")


class Idempotency:
    """Answers a write that was seen before with what was answered then."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] not in UNSAFE or not scope["path"].startswith("/v1/"):
            await self.app(scope, receive, send)
            return
        key = Headers(scope=scope).get(HEADER)
        if key is None or scope["path"].startswith(SECRETS):
            await self.app(scope, receive, send)
            return
        try:
            await self._once(key, scope, receive, send)
        except Refused as problem:
            await answer(scope["state"]["request_id"], problem)(scope, receive, send)

    async def _once(self, key: str, scope: Scope, receive: Receive, send: Send) -> None:
        if not 1 <= len(key) <= LONGEST or not key.isascii() or not key.isprintable():
            raise Refused(422, "invalid_input", f"{HEADER} must have 1 to {LONGEST} plain characters", field=HEADER)
        request = Request(scope, receive)
        service, caller = scope["app"].state.service, await caller_of(request)
        body = await request.body()
        store, now = service.of(caller), service.now()
        route = f"{scope['method']} {scope['path']}"
        fresh = Reply(key, route, _print(scope, caller, body), None, b"", timestamp(now), caller.project)
        there = await run_in_threadpool(store.claim_reply, fresh)
        if there is not None and there.status is None and _abandoned(there, now):
            await run_in_threadpool(store.drop_reply, key, project=caller.project)
            there = await run_in_threadpool(store.claim_reply, fresh)
        if there is not None:
            await _again(there, fresh)(scope, receive, send)
            return
        seen: dict[str, Any] = {"status": 0, "headers": [], "body": b""}

        async def sent(message: Message) -> None:
            if message["type"] == "http.response.start":
                seen["status"], seen["headers"] = message["status"], message.get("headers", [])
            elif message["type"] == "http.response.body":
                seen["body"] += message.get("body", b"")
            await send(message)

        try:
            await self.app(scope, replayed(body, receive), sent)
        finally:
            # A text that is no UTF-8 is no answer of ours: reports and the like are not written, and not kept.
            if 200 <= seen["status"] < 500 and seen["status"] not in NOT_KEPT:
                kept = {
                    "headers": {
                        name.decode(): value.decode("latin-1") for name, value in seen["headers"] if name in KEPT_HEADERS
                    },
                    "body": seen["body"].decode("utf-8", "replace"),
                }
                done = replace(fresh, status=seen["status"], body=json.dumps(kept).encode())
                await run_in_threadpool(store.keep_reply, done)
            else:
                await run_in_threadpool(store.drop_reply, key, project=caller.project)


def _again(there: Reply, fresh: Reply) -> ASGIApp:
    from starlette.responses import Response

    if (there.route, there.fingerprint) != (fresh.route, fresh.fingerprint):
        raise Refused(422, "key_reused", f"{HEADER} was used for another request; use a new key", field=HEADER)
    if there.status is None:
        raise Refused(409, "in_progress", "this request is still at work; ask again", headers={"Retry-After": "1"})
    kept = json.loads(there.body)
    return Response(kept["body"], there.status, {**kept["headers"], "idempotent-replayed": "true"})


def _print(scope: Scope, caller: Caller, body: bytes) -> str:
    """Return what tells requests apart; who asks is part of it, so that nobody is answered what they could not have asked."""
    kind = Headers(scope=scope).get("content-type", "")
    parts = (scope["query_string"], kind.encode("utf-8", "replace"), repr((caller.key_id, caller.who)).encode(), body)
    return hashlib.sha256(b"\0".join(hashlib.sha256(part).digest() for part in parts)).hexdigest()


def _abandoned(there: Reply, now: datetime) -> bool:
    return there.created_at < timestamp(now - ABANDONED)
