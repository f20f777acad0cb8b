"""``Idempotency-Key`` on writes: sent twice, carried out once, answered twice.

The answer is kept with the caller's project for two days. The same key with another request is an error, and so is a second
request while the first is still at work. Work goes on when the time of its request is up; its answer is for whoever asks again.

Where the writer died nobody knows whether it had written. Rows that come without an id get one from the key and their place,
so that a second try writes the same rows, and not more of them.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
from collections.abc import Coroutine
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ringtrue.errors import RingtrueError
from ringtrue.service.auth import Caller, caller_of
from ringtrue.service.errors import Refused
from ringtrue.service.middleware import UNSAFE, replayed
from ringtrue.store import Reply, Store, timestamp

HEADER = "idempotency-key"
LONGEST = 255
ABANDONED = timedelta(minutes=10)
"""A request without an answer after so long died with its server; its key may be used again."""
NOT_KEPT = {401, 403, 408, 409, 413, 429}
"""Answers that say nothing about the request itself."""
SECRETS = "/v1/keys"
"""Their answers hold tokens, which are written down nowhere."""
KEPT_HEADERS = (b"content-type", b"location")
PAUSES = (1.0, 3.0, 10.0, 30.0, 60.0)
"""Seconds between the tries to write down what became of a request, while the store is away."""
_LOG = logging.getLogger("ringtrue.service")


def name_once(request: Request, kind: str, place: int) -> str | None:
    """Return the id of the row at a place of this request, the same whenever it is sent; None for one without a key."""
    once = request.scope["state"].get("once")
    return None if once is None else f"{kind}_{hashlib.sha256(f'{once}:{place}'.encode()).hexdigest()[:32]}"


class Idempotency:
    """Answers a write that was seen before with what was answered then."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app
        self._tasks: set[asyncio.Task[None]] = set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        write = scope["type"] == "http" and scope["method"] in UNSAFE and scope["path"].startswith("/v1/")
        key = Headers(scope=scope).get(HEADER) if write and not scope["path"].startswith(SECRETS) else None
        if key is None:
            await self.app(scope, receive, send)
            return
        if not 1 <= len(key) <= LONGEST or not key.isascii() or not key.isprintable():
            raise Refused(422, "invalid_input", f"{HEADER} must have 1 to {LONGEST} plain characters", field=HEADER)
        request = Request(scope, receive)
        service, caller = scope["app"].state.service, await caller_of(request)
        body = await request.body()
        store, now = service.store.only(caller.project), service.now()
        route = f"{scope['method']} {scope['path']}"
        fresh = Reply(key, route, _print(scope, caller, body), None, b"", timestamp(now), caller.project)
        there = await run_in_threadpool(store.claim_reply, fresh)
        if there is not None and there.status is None and _abandoned(there, now):
            await run_in_threadpool(store.drop_reply, key, project=caller.project)
            there = await run_in_threadpool(store.claim_reply, fresh)
        if there is not None:
            await _again(there, fresh)(scope, receive, send)
            return
        scope["state"]["once"] = hashlib.sha256("\0".join((caller.project, key, fresh.fingerprint)).encode()).hexdigest()
        messages: list[Message] = []

        async def gather(message: Message) -> None:
            messages.append(message)

        async def carry_out() -> None:
            try:
                await self.app(scope, replayed(body, receive), gather)
            finally:
                await self._settle(store, fresh, messages)

        # If the time of the request is up, the work goes on; its answer is for whoever asks again.
        await asyncio.shield(self._beside(carry_out()))
        for message in messages:
            await send(message)

    async def _settle(self, store: Store, fresh: Reply, messages: list[Message]) -> None:
        """Keep the answer, or give the key up where none says anything; beside the request where the store is away."""
        try:
            await run_in_threadpool(_write_down, store, fresh, messages)
        except RingtrueError:
            self._beside(self._settle_later(store, fresh, messages))

    async def _settle_later(self, store: Store, fresh: Reply, messages: list[Message]) -> None:
        for pause in PAUSES:
            await asyncio.sleep(pause)
            with suppress(RingtrueError):
                await run_in_threadpool(_write_down, store, fresh, messages)
                return
        _LOG.error("the outcome of a request could not be saved; its key is free in %s", ABANDONED)

    def _beside(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (problem := task.exception()) is not None:  # perhaps nobody waits for it any more
            _LOG.error("a request that is carried out once failed: %s", type(problem).__name__)


def _write_down(store: Store, fresh: Reply, messages: list[Message]) -> None:
    status = messages[0]["status"] if messages else 0
    # A text that is not UTF-8 is not an answer of ours: reports and the like are not written, and not kept.
    if 200 <= status < 500 and status not in NOT_KEPT:
        headers = {name.decode(): value.decode("latin-1") for name, value in messages[0]["headers"] if name in KEPT_HEADERS}
        body = b"".join(message.get("body", b"") for message in messages).decode("utf-8", "replace")
        kept = json.dumps({"headers": headers, "body": body}).encode()
        store.keep_reply(replace(fresh, status=status, body=kept))
    else:
        store.drop_reply(fresh.key, project=fresh.project)


def _again(there: Reply, fresh: Reply) -> ASGIApp:
    if (there.route, there.fingerprint) != (fresh.route, fresh.fingerprint):
        raise Refused(422, "key_reused", f"{HEADER} was used for another request; use a new key", field=HEADER)
    if there.status is None:
        raise Refused(409, "in_progress", "a request with this key is in progress; try again", headers={"Retry-After": "1"})
    kept = json.loads(there.body)
    return Response(kept["body"], there.status, {**kept["headers"], "idempotent-replayed": "true"})


def _print(scope: Scope, caller: Caller, body: bytes) -> str:
    """Return what tells requests apart; who asks is part of it, so that nobody is answered what they could not have asked."""
    kind = Headers(scope=scope).get("content-type", "")
    parts = (scope["query_string"], kind.encode("utf-8", "replace"), repr((caller.key_id, caller.who)).encode(), body)
    return hashlib.sha256(b"\0".join(hashlib.sha256(part).digest() for part in parts)).hexdigest()


def _abandoned(there: Reply, now: datetime) -> bool:
    return there.created_at < timestamp(now - ABANDONED)
