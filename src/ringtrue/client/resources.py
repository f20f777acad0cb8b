"""The parts of ``/v1`` that hold lists of things: a class each, whose methods are the calls of that part."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from itertools import islice
from typing import Any, Literal

from ringtrue import answers
from ringtrue.client.background import BackgroundLog
from ringtrue.client.wire import Wire, encoded, given, read, segment, several
from ringtrue.errors import InputError, MissingInput, nearest
from ringtrue.traffic import Traffic

KINDS = {"json": "application/json", "yaml": "application/yaml", "jsonl": "application/x-ndjson"}
"""What an upload of a golden set may be, and its content type."""
AT_ONCE = 1_000
"""Searches or events that a service takes in one request."""


class Resource:
    """One part of the service."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire


class GoldenResource(Resource):
    """The golden sets of the project, and those that come with Ringtrue."""

    def list(self) -> Iterator[answers.GoldenItem]:
        """Yield the golden sets by name."""
        return self._wire.items(answers.GoldenItem, "/v1/golden")

    def versions(self, name: str) -> Iterator[answers.GoldenItem]:
        """Yield the versions of a set, the last saved first; raises MissingInput if there is no such set."""
        return self._wire.items(answers.GoldenItem, f"/v1/golden/{segment(name, 'name')}/versions")

    def get(self, name: str, version: str | None = None, *, content: bool = False) -> answers.GoldenVersion:
        """Return a version of a set, the last saved unless one is named; with ``content`` the whole set.

        Raises MissingInput if there is none.
        """
        path = f"/v1/golden/{segment(name, 'name')}"
        if version is not None:
            path += f"/{segment(version, 'version')}"
        return self._wire.get_as(answers.GoldenVersion, path, content="true" if content else None)

    def upload(
        self, content: Mapping[str, Any] | bytes, *, kind: Literal["json", "yaml", "jsonl"] = "json"
    ) -> answers.GoldenVersion:
        """Keep a set under the name and version that it has, and return it with what validation found.

        ``content`` is the set itself, such as ``ringtrue.golden.record_of`` makes, or the bytes of a file of that ``kind``.
        Raises InputError for what cannot be read, and where this version is there already with another content.
        """
        if kind not in KINDS:
            raise InputError(f"a set cannot be uploaded as {kind!r}; did you mean {nearest(str(kind), KINDS)}?")
        if not isinstance(content, bytes):
            if kind != "json":
                raise InputError(f"a dictionary is sent as json, not as {kind}; leave kind out, or give the bytes of the file")
            content = encoded(dict(content))
        reply = self._wire.send("POST", "/v1/golden", content=content, headers={"Content-Type": KINDS[kind]})
        return read(answers.GoldenVersion, reply.json)

    def keep_shipped(self, name: str) -> answers.GoldenVersion:
        """Keep a copy of a set that comes with Ringtrue, so that versions of one's own can follow it."""
        return self._wire.write_as(answers.GoldenVersion, "POST", "/v1/golden/shipped", {"name": name})

    def diff(self, name: str, old: str, new: str | None = None) -> answers.GoldenDifference:
        """Return what changed from version ``old`` to ``new``, the last saved unless given."""
        params = {"from": old, "to": new}
        return self._wire.get_as(answers.GoldenDifference, f"/v1/golden/{segment(name, 'name')}/diff", **params)


class BaselinesResource(Resource):
    """The baselines of the project."""

    def list(self) -> Iterator[answers.BaselineItem]:
        """Yield the baselines by name."""
        return self._wire.items(answers.BaselineItem, "/v1/baselines")

    def get(self, name: str) -> answers.BaselineVersion:
        """Return a baseline by ``name``, its last version, or by ``name@version``; raises MissingInput."""
        return self._wire.get_as(answers.BaselineVersion, f"/v1/baselines/{segment(name, 'name')}")

    def update(
        self, name: str, run_id: str, *, version: str | None = None, force: bool = False, reason: str = ""
    ) -> answers.BaselineUpdate:
        """Take a run as the new standard and return what that moved.

        Raises InputError for a run that is worse, unless forced with a reason, which stays with the baseline.
        """
        body = given({"run": run_id, "name": name, "version": version}) | {"force": force, "reason": reason}
        return self._wire.write_as(answers.BaselineUpdate, "POST", "/v1/baselines", body)


class JudgmentsResource(Resource):
    """The judgments of the project."""

    def list(
        self, *, query_id: str | None = None, source: answers.JudgmentSource | None = None, annotator: str | None = None
    ) -> Iterator[answers.KeptJudgment]:
        """Yield judgments by query, item, source and annotator."""
        return self._wire.items(answers.KeptJudgment, "/v1/judgments", query_id=query_id, source=source, annotator=annotator)

    def add(
        self,
        query_id: str,
        item_id: str,
        relevance: int,
        *,
        annotator: str | None = None,
        query: str | None = None,
        note: str = "",
    ) -> answers.KeptJudgment:
        """Judge by hand, from 0 (not relevant) to 3 (answers it), and return what is kept; the annotator is the key's name."""
        said = {"query_id": query_id, "item_id": item_id, "relevance": relevance, "annotator": annotator, "query": query}
        return self.add_many([{**said, "note": note}])[0]

    def add_many(self, judgments: Iterable[Mapping[str, Any]]) -> tuple[answers.KeptJudgment, ...]:
        """Judge by hand many pairs in one request, each with the fields of ``add``; 1,000 at most."""
        told = self._wire.write("POST", "/v1/judgments", {"judgments": [given(one) for one in judgments]})
        return read(tuple[answers.KeptJudgment, ...], told)

    def delete(self, source: answers.JudgmentSource, *, annotator: str | None = None, query_id: str | None = None) -> int:
        """Delete the judgments of a source, or only those of one annotator or query, and return how many; needs 'admin'."""
        told = self._wire.write("DELETE", "/v1/judgments", source=source, annotator=annotator, query_id=query_id)
        return int(told["deleted"])


class ReviewsResource(Resource):
    """The review queue of the project. Judging needs a key with scope 'review', whose name is the reviewer's."""

    def list(self, *, state: answers.ReviewState | None = None) -> Iterator[answers.Pair]:
        """Yield pairs, the most urgent first, without grades."""
        return self._wire.items(answers.Pair, "/v1/reviews", state=state)

    def add(self, pairs: Iterable[Mapping[str, Any]], *, wanted: int = 1, golden: str | None = None) -> answers.AddedPairs:
        """Put pairs into the queue, 1,000 at most, each to be judged by ``wanted`` people.

        A pair has ``query_id``, ``query`` and ``doc_id``, and may have ``title``, ``text`` and ``priority``; one that is there
        keeps its state and its grades.
        """
        body = given({"pairs": [given(pair) for pair in pairs], "wanted": wanted, "golden": golden})
        return self._wire.write_as(answers.AddedPairs, "POST", "/v1/reviews", body)

    def next(self, *, passing: str | Sequence[str] = (), minutes: float | None = None) -> answers.NextPair:
        """Return a pair to judge, kept for the caller for a while; keys in ``passing`` are passed over."""
        body = given({"passing": several(passing), "minutes": minutes})
        return self._wire.write_as(answers.NextPair, "POST", "/v1/reviews/next", body)

    def judge(self, key: str, grade: Literal[0, 1, 2, 3], *, note: str = "") -> answers.Pair:
        """Judge a pair and return it; said again, the newest counts, until the pair is published."""
        return self._wire.write_as(
            answers.Pair, "POST", f"/v1/reviews/{segment(key, 'key')}/judge", {"grade": grade, "note": note}
        )

    def undo(self) -> answers.Pair | None:
        """Take back the last thing that the caller said and return the pair; None if there was nothing."""
        return self._wire.write_as(answers.Undone, "POST", "/v1/reviews/undo").pair

    def skip(self, key: str) -> answers.Pair:
        """Give a pair back for others to judge; name its key in ``passing`` to get another."""
        return self._wire.write_as(answers.Pair, "POST", f"/v1/reviews/{segment(key, 'key')}/skip")

    def reject(self, key: str, *, why: str = "") -> answers.Pair:
        """Take a pair out that nobody should judge."""
        return self._wire.write_as(answers.Pair, "POST", f"/v1/reviews/{segment(key, 'key')}/reject", {"why": why})

    def backlog(self) -> answers.Backlog:
        """Return how many pairs are in each state, and how long the oldest waits."""
        return self._wire.get_as(answers.Backlog, "/v1/reviews/backlog")

    def standing(self, *, adjudicator: str | None = None) -> answers.ReviewStanding:
        """Return who judged how much, how far they agree, and where they do not."""
        return self._wire.get_as(answers.ReviewStanding, "/v1/reviews/standing", adjudicator=adjudicator)

    def publish(
        self,
        golden: str,
        *,
        rule: str = "majority",
        adjudicator: str | None = None,
        force: bool = False,
        reason: str = "",
    ) -> answers.Published:
        """Keep the next version of a golden set, with the judgments of its approved pairs.

        Raises CannotDecide if no pair of the set is approved, or reviewers agree too little; ``force`` with a ``reason``,
        which stays in the audit trail, passes over that.
        """
        body = given({"golden": golden, "rule": rule, "adjudicator": adjudicator, "force": force, "reason": reason})
        return self._wire.write_as(answers.Published, "POST", "/v1/reviews/publish", body)


class ShadowResource(Resource):
    """The features of the project that run or ran in the shadow."""

    def list(self) -> tuple[answers.ShadowFeature, ...]:
        """Return the features with what their shadow has shown."""
        return read(tuple[answers.ShadowFeature, ...], self._wire.get("/v1/shadow"))

    def get(self, feature: str, *, limit: int | None = None) -> answers.ShadowFeatureRuns:
        """Return what the shadow of a feature has shown, and its newest runs; raises MissingInput."""
        return self._wire.get_as(answers.ShadowFeatureRuns, f"/v1/shadow/{segment(feature, 'feature')}", limit=limit)

    def record(self, feature: str, runs: Iterable[Mapping[str, Any]]) -> answers.ShadowRecorded:
        """Record results of a candidate that runs elsewhere, 1,000 at most, and return what became of them.

        One has ``query_id`` and ``control_result_ids`` with ``treatment_result_ids``, or with ``error``; and may have
        ``control_latency_ms``, ``treatment_latency_ms``, ``candidate``, ``source`` and ``created_at``.
        """
        body = {"runs": [given(one) for one in runs]}
        return self._wire.write_as(answers.ShadowRecorded, "POST", f"/v1/shadow/{segment(feature, 'feature')}/runs", body)


class TestsResource(Resource):
    """The sequential tests of the project."""

    def list(self) -> tuple[answers.SequentialTest, ...]:
        """Return the tests by feature."""
        return read(tuple[answers.SequentialTest, ...], self._wire.get("/v1/tests"))

    def get(self, feature: str) -> answers.SequentialTestPath:
        """Return the test of a feature with the points of its boundary plot; raises MissingInput."""
        return self._wire.get_as(answers.SequentialTestPath, f"/v1/tests/{segment(feature, 'feature')}")

    def start(self, feature: str, **options: Any) -> answers.SequentialTest:
        """Start the test of a feature and return it.

        Options, each with the service's default: ``method`` ('sprt', 'confidence-sequence' or 'beta-binomial'), ``measure``,
        ``alpha``, ``beta``, ``delta``, ``sigma``, ``min_samples``, ``graduation_threshold``, and ``again`` to begin anew.
        Raises InputError for one that there is not, and where the feature has a test already.
        """
        return self._wire.write_as(answers.SequentialTest, "POST", "/v1/tests", {"feature": feature, **options})

    def record(self, feature: str, scores: Iterable[Mapping[str, Any]]) -> answers.RecordedScores:
        """Count the scores of both sides on queries, 1,000 at most, and return what became of each.

        One has ``query_id`` with ``control`` and ``treatment``, or with ``difference``. A query counts once.
        """
        body = {"scores": [given(one) for one in scores]}
        return self._wire.write_as(answers.RecordedScores, "POST", f"/v1/tests/{segment(feature, 'feature')}/record", body)

    def set_status(self, feature: str, status: answers.Status, *, why: str = "") -> answers.SequentialTest:
        """Pause, resume, graduate or reject a test, and return it."""
        body = {"status": status, "why": why}
        return self._wire.write_as(answers.SequentialTest, "POST", f"/v1/tests/{segment(feature, 'feature')}/status", body)


class FlagsResource(Resource):
    """The flags of the project."""

    def list(self) -> tuple[answers.ListedFlag, ...]:
        """Return the flags by name, with those that only the server's environment sets."""
        return read(tuple[answers.ListedFlag, ...], self._wire.get("/v1/flags"))

    def get(self, name: str) -> answers.FlagPage:
        """Return a flag with its graduation checklist and its history; raises MissingInput."""
        return self._wire.get_as(answers.FlagPage, self._path(name))

    def set(
        self,
        name: str,
        *,
        rollout: float | None = None,
        state: str | None = None,
        shadow: bool | None = None,
        min_samples: int | None = None,
        graduation_threshold: float | None = None,
        measure: str | None = None,
        stage_hours: float | None = None,
        description: str | None = None,
        why: str = "",
    ) -> answers.FlagState:
        """Make a flag or change it, and return it; what is left out stays as it is."""
        body = given(
            {
                "rollout": rollout, "state": state, "shadow": shadow, "min_samples": min_samples, "why": why,
                "graduation_threshold": graduation_threshold, "measure": measure, "stage_hours": stage_hours,
                "description": description,
            }
        )  # fmt: skip
        return self._wire.write_as(answers.FlagState, "PUT", self._path(name), body)

    def step(self, name: str, *, breaches: str | Sequence[str] = ()) -> answers.FlagDecision:
        """Take a feature one stage further where the evidence allows it, back where a guardrail is broken; else say why not.

        Each of ``breaches``, found by a watch of one's own, rolls the feature back.
        """
        return self._wire.write_as(answers.FlagDecision, "POST", f"{self._path(name)}/step", {"breaches": several(breaches)})

    def roll_back(self, name: str, *, why: str) -> answers.FlagState:
        """Take a feature away from everybody at once, pause it, and return it."""
        return self._wire.write_as(answers.FlagState, "POST", f"{self._path(name)}/rollback", {"why": why})

    def variant(self, name: str, identity: str) -> answers.Variant:
        """Return whether a feature is on for an identity; the same identity always gets the same."""
        return self._wire.get_as(answers.Variant, f"{self._path(name)}/variant", identity=identity)

    def _path(self, name: str) -> str:
        return f"/v1/flags/{segment(name, 'name')}"


class ExperimentsResource(Resource):
    """The experiments of the project."""

    def list(self) -> Iterator[answers.ExperimentRow]:
        """Yield experiments, the newest first."""
        return map(_row, self._wire.items(Mapping[str, Any], "/v1/experiments"))  # type: ignore[type-abstract]

    def get(self, experiment_id: str) -> answers.ExperimentRow:
        """Return one experiment; raises MissingInput if there is none of that id."""
        return _row(self._wire.get(f"/v1/experiments/{segment(experiment_id, 'experiment_id')}"))

    def add(self, experiments: Iterable[Mapping[str, Any]]) -> tuple[answers.ExperimentRow, ...]:
        """Bring in experiments, all of them or none, and return them as they are kept.

        One has ``date`` and ``description``, and may have ``config_changes``, ``results``, ``verdict`` and an ``id``; without
        one it gets the next number.
        """
        told = self._wire.write("POST", "/v1/experiments", {"experiments": [dict(one) for one in experiments]})
        return tuple(map(_row, told))


def _row(value: Any) -> answers.ExperimentRow:
    known = {one.name for one in fields(answers.ExperimentRow)} - {"other"}
    if not isinstance(value, Mapping):
        return read(answers.ExperimentRow, value, place="experiment")
    other = {name: item for name, item in value.items() if name not in known}
    return read(
        answers.ExperimentRow, {**{name: value[name] for name in known if name in value}, "other": other}, place="experiment"
    )


class KeysResource(Resource):
    """The keys of the project; all of this needs a key with scope 'admin'."""

    def list(self) -> tuple[answers.KeyState, ...]:
        """Return the keys of the project, those that ended or were revoked too."""
        return read(tuple[answers.KeyState, ...], self._wire.get("/v1/keys"))

    def create(
        self, name: str, scopes: answers.Scope | Sequence[answers.Scope], *, expires_at: str | None = None
    ) -> answers.MadeKey:
        """Make a key and return it with its token.

        This request is sent once and carries no Idempotency-Key: for that the service would have to keep its answer, and the
        token with it.
        """
        body = encoded(given({"name": name, "scopes": several(scopes), "expires_at": expires_at}))
        return read(answers.MadeKey, self._wire.send("POST", "/v1/keys", content=body, again=False).json)

    def revoke(self, key_id: str) -> answers.KeyState:
        """Revoke a key, which opens nothing from now on, and return it; raises MissingInput."""
        return self._wire.write_as(answers.KeyState, "DELETE", f"/v1/keys/{segment(key_id, 'key_id')}")

    def audit(
        self, *, subject: str | None = None, what: str | None = None, since: str | None = None
    ) -> Iterator[answers.AuditRecord]:
        """Yield changes, the newest first."""
        return self._wire.items(answers.AuditRecord, "/v1/audit", subject=subject, what=what, since=since)


class QueriesResource(Resource):
    """The searches of the log."""

    def background(self) -> BackgroundLog:
        """Return a log that sends searches from a thread of its own, many in a request, so that no caller waits."""
        return BackgroundLog(lambda body: self._wire.send("POST", "/v1/queries", content=body, again=False))

    def list(
        self,
        *,
        text: str | None = None,
        tool: str | None = None,
        session_id: str | None = None,
        since: str | None = None,
        until: str | None = None,
        trouble: bool = False,
        slower_than: float | None = None,
        traffic: Traffic | Literal["all"] = "user",
    ) -> Iterator[answers.LoggedSearch]:
        """Yield searches of the log, the newest first.

        ``text`` are words that the query holds, ``trouble`` leaves those that failed, fell back or found nothing,
        ``slower_than`` is in milliseconds, times are ISO 8601. ``traffic`` says whose searches.
        """
        return self._wire.items(
            answers.LoggedSearch, "/v1/queries", text=text, tool=tool, session_id=session_id, since=since, until=until,
            trouble="true" if trouble else None, slower_than=slower_than, traffic=traffic,
        )  # fmt: skip

    def get(self, query_id: str) -> answers.LoggedSearch:
        """Return one search; raises MissingInput if the log has none of that id."""
        if query_id == "stats":  # the address of ``stats``, and so of no search
            raise MissingInput(f"{self._wire.who}: the log has no search 'stats'")
        return self._wire.get_as(answers.LoggedSearch, f"/v1/queries/{segment(query_id, 'query_id')}")

    def stats(
        self, *, since: str | None = None, until: str | None = None, step: answers.Step | None = None
    ) -> answers.LogStats:
        """Return volume, empty and degraded answers, latency and proxy of a time, step by step; the last day unless given."""
        return self._wire.get_as(answers.LogStats, "/v1/queries/stats", since=since, until=until, step=step)


class FeedbackResource(Resource):
    """What people and agents did with results."""

    def send(
        self,
        event_type: str,
        *,
        session_id: str,
        item_id: str | None = None,
        query_id: str | None = None,
        actor: answers.Actor = "unknown",
        user_id: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        event_id: str | None = None,
        created_at: str | None = None,
    ) -> answers.LinkedEvent:
        """Record one event, such as a click, and return it with the search it was linked to.

        The search is found by prompt, trace or session where ``query_id`` is not given.
        """
        event = given(
            {
                "event_type": event_type, "session_id": session_id, "item_id": item_id, "query_id": query_id, "actor": actor,
                "user_id": user_id, "metadata": None if metadata is None else dict(metadata), "event_id": event_id,
                "created_at": created_at,
            }
        )  # fmt: skip
        return self._wire.write_as(answers.Taken, "POST", "/v1/feedback", event).events[0]

    def send_many(self, events: Iterable[Mapping[str, Any]]) -> answers.Taken:
        """Record events, any number of them, each with the fields of ``send``; return what became of all."""
        told = [self._wire.write_as(answers.Taken, "POST", "/v1/feedback", part) for part in parts(events)]
        return answers.Taken(
            sum(one.accepted for one in told),
            sum(one.stored for one in told),
            tuple(event for one in told for event in one.events),
        )

    def list(
        self,
        *,
        query_id: str | None = None,
        session_id: str | None = None,
        event_type: str | None = None,
        since: str | None = None,
        until: str | None = None,
    ) -> Iterator[answers.Event]:
        """Yield events, the newest first."""
        return self._wire.items(
            answers.Event,
            "/v1/feedback",
            query_id=query_id,
            session_id=session_id,
            event_type=event_type,
            since=since,
            until=until,
        )


def parts(rows: Iterable[Mapping[str, Any]]) -> Iterator[Sequence[Mapping[str, Any]]]:
    """Yield what was given of searches or events in lists that a service takes in one request."""
    left = map(given, rows)
    return iter(lambda: list(islice(left, AT_ONCE)), [])
