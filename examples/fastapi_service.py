"""A FastAPI service with everything that a live search needs: a query log, clicks, a flag and a shadow run.

    RINGTRUE_STORE=shop.sqlite uvicorn --app-dir examples fastapi_service:app

    curl 'localhost:8000/search?text=pool&session=s1'
    curl -X POST 'localhost:8000/click?query_id=eq_…&item=pool'

Afterwards, with --store shop.sqlite:

    ringtrue log tail                                  every search, with its results and times
    ringtrue feedback derive                           judgments from the clicks
    ringtrue shadow status                             how the candidate's answers differ from production's
    ringtrue flag set titles-first --shadow --rollout 10    the candidate answers 10 % of the users
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated, Any

from fastapi import FastAPI, Query

from ringtrue.log import QueryLog, TrafficMiddleware
from ringtrue.rollout import Flags, Shadow
from ringtrue.store import Store

ROOMS = {
    "pool": "Indoor pool, open until ten",
    "spa": "Sauna and massage beside the pool",
    "garage": "Parking for guests, ten euros a night",
    "late": "Late checkout until two",
}
FEATURE = "titles-first"
Filled = Annotated[str, Query(pattern=r"\S")]
"""A parameter that is not blank."""


def production(text: str, k: int = 10) -> list[tuple[str, float]]:
    """The search as it is: documents by the number of words that they share with the question."""
    asked = set(text.lower().split())
    scores = {name: len(asked & set(words.lower().replace(",", "").split())) for name, words in ROOMS.items()}
    return sorted(((name, float(score)) for name, score in scores.items() if score), key=lambda hit: -hit[1])[:k]


def candidate(text: str, k: int = 10) -> list[tuple[str, float]]:
    """The search as it may become: a document whose name is asked for comes first."""
    found = dict(production(text, k=len(ROOMS)))
    found |= {name: found.get(name, 0.0) + 1 for name in ROOMS if name in text.lower()}
    return sorted(found.items(), key=lambda hit: -hit[1])[:k]


log = QueryLog()  # into RINGTRUE_STORE, else the store of ringtrue.toml
released = log.watched(candidate, tool="shop")


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    """Open the store, and start the shadow run in the process that answers."""
    watched = log.watched(production, tool="shop")
    # With much traffic, a share of the searches is enough: sample=0.1.
    with log, Store.open() as store, Shadow(watched, candidate, store, FEATURE, sample=1.0) as shadow:
        app.state.flags, app.state.shadow = Flags(store), shadow
        yield


app = FastAPI(lifespan=lifespan)
app.add_middleware(TrafficMiddleware)  # logs evaluations of this service apart from users' searches


@app.get("/search")
def search(text: str, session: Filled, user: str = "", k: Annotated[int, Query(ge=1, le=100)] = 10) -> dict[str, Any]:
    """Answer from production or, for users with the flag, from the candidate; both are logged."""
    flags, who = app.state.flags, user or session
    retriever = released if flags.is_on(FEATURE, who) else app.state.shadow
    with log.context(session_id=session, user_id=user or None, flags=flags.in_force(who)):
        hits = retriever.search(text, k=k)
    return {"query_id": log.query_id, "hits": [{"id": hit.doc_id, "score": hit.score} for hit in hits]}


@app.post("/click", status_code=204)
def click(query_id: Filled, item: Filled) -> None:
    """Take a click on a result; the page knows the query id from the answer."""
    log.click(query_id, item)
