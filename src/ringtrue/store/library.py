"""Golden sets, baselines, experiments, runs, reviews, sequential tests and flags, and the trail of who changed them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict
from types import EllipsisType
from typing import Any, TypeVar, get_args

from sqlalchemy import and_, delete, func, or_, select, tuple_, update

from ringtrue.answers import ReviewState
from ringtrue.errors import InputError, MissingInput
from ringtrue.store.base import Base, Moment, change_row, insert
from ringtrue.store.records import (
    DEFAULT_PROJECT,
    ABTest,
    AuditEntry,
    Flag,
    KeptVersion,
    ReviewItem,
    StoredBaseline,
    StoredExperiment,
    StoredGoldenSet,
    StoredRating,
    StoredRun,
    TestPoint,
    timestamp,
)
from ringtrue.store.tables import (
    AUDIT,
    BASELINE,
    EXPERIMENT,
    FLAG,
    GOLDEN_SET,
    POINT,
    RATING,
    REVIEW,
    RUN,
    TEST,
    Form,
    ab_counted,
    words,
)

Record = TypeVar("Record", StoredGoldenSet, StoredBaseline)


ALL_POINTS = 200
"""So many queries of a test leave a point each."""


class LibraryStore(Base):
    """Golden sets, baselines, experiments and runs; the review queue; what is being tried, on whom, and who decided it."""

    def save_golden_set(self, row: StoredGoldenSet) -> bool:
        """Keep a version of a golden set; return False if it is there already, the same.

        Raises InputError if that version holds something else: what was measured with it must stay what it was.
        """
        return self._save(GOLDEN_SET, row, f"golden set {row.name!r} has another version {row.version!r} already")

    def golden_set(self, name: str, version: str | None = None, *, project: str = DEFAULT_PROJECT) -> StoredGoldenSet | None:
        """Return a version of a golden set, the one that was saved last unless named; None if there is none."""
        return self._version(GOLDEN_SET, name, version, project)

    def golden_sets(self, *, project: str = DEFAULT_PROJECT, name: str | None = None) -> list[KeptVersion]:
        """Return the versions of one or of all golden sets by name, the last saved first."""
        return self._versions(GOLDEN_SET, project, name)

    def save_baseline(self, row: StoredBaseline) -> bool:
        """Keep a version of a baseline; return and raise as for golden sets."""
        return self._save(BASELINE, row, f"baseline {row.name!r} has another version {row.version!r} already")

    def baseline(self, name: str, version: str | None = None, *, project: str = DEFAULT_PROJECT) -> StoredBaseline | None:
        """Return a version of a baseline, the one that was saved last unless named; None if there is none."""
        return self._version(BASELINE, name, version, project)

    def baselines(self, *, project: str = DEFAULT_PROJECT, name: str | None = None) -> list[KeptVersion]:
        """Return the versions of one or of all baselines by name, the last saved first."""
        return self._versions(BASELINE, project, name)

    def add_experiments(
        self, make: Callable[[Sequence[str]], Sequence[StoredExperiment]], *, project: str = DEFAULT_PROJECT
    ) -> list[StoredExperiment]:
        """Add experiments, all of them or none, and return them.

        ``make`` is given the ids that are taken and returns what to add. Nobody else adds meanwhile, so that two who number
        experiments at once do not give the same number. Raises InputError for an id that is taken, or another project.
        """
        table = EXPERIMENT.table
        taken = select(table.c.experiment_id).where(*self._where(EXPERIMENT, project)).order_by(table.c.id)
        with self._writing() as connection:
            if connection.dialect.name == "postgresql":  # on SQLite one that writes is alone anyway
                connection.exec_driver_sql(f"LOCK TABLE {table.name} IN SHARE ROW EXCLUSIVE MODE")
            rows = [EXPERIMENT.row(experiment) for experiment in make(list(connection.scalars(taken)))]
            for row in rows:
                if row["project"] != words(project):
                    raise InputError(f"experiment {row['experiment_id']!r} is of project {row['project']!r}, not {project!r}")
                if not insert(connection, table, [row]):
                    raise InputError(f"experiment {row['experiment_id']!r} already exists; give another id")
        return [EXPERIMENT.read(row) for row in rows]

    def experiment(self, experiment_id: str, *, project: str = DEFAULT_PROJECT) -> StoredExperiment | None:
        """Return one experiment; None if there is none of that id."""
        return self._one(EXPERIMENT, project, experiment_id=experiment_id)

    def experiments(self, *, project: str = DEFAULT_PROJECT, limit: int | None = None) -> list[StoredExperiment]:
        """Return experiments in the order they were added; ``limit`` takes the last ones."""
        return self._all(EXPERIMENT, self._where(EXPERIMENT, project), EXPERIMENT.table.c.id.desc(), limit=limit)[::-1]

    def save_run(self, row: StoredRun) -> bool:
        """Keep an evaluation with its rankings; return False if it is there already, the same.

        Raises InputError if the run id has other content: runs are kept as they were.
        """
        return self._save(RUN, row, f"run {row.run_id!r} has other content already")

    def run(self, run_id: str, *, project: str = DEFAULT_PROJECT) -> StoredRun | None:
        """Return an evaluation with its rankings; None if there is none of that run id."""
        return self._one(RUN, project, run_id=run_id)

    def run_names(self, *, project: str = DEFAULT_PROJECT, among: Sequence[str] | None = None) -> dict[str, str]:
        """Return the names of the runs whose rankings are kept, by run id: all, or those among the given ids."""
        found = select(RUN.table.c.run_id, RUN.table.c.name).where(*self._where(RUN, project, run_id=among))
        with self._reading() as connection:
            return {row.run_id: row.name for row in connection.execute(found)}

    def _save(self, form: Form[Any], record: Any, refusal: str) -> bool:
        if self._add(form, [record]):
            return True
        there = self._one(form, record.project, **{name: getattr(record, name) for name in form.key[1:]})
        # Saved again later, or with its keys in another order, it is the same.
        if there is not None and there != form.read({**form.row(record), "created_at": there.created_at}):
            raise InputError(f"{refusal}; give it a new {form.key[-1].replace('run_id', 'id')}")
        return False

    def _version(self, form: Form[Record], name: str, version: str | None, project: str) -> Record | None:
        where = self._where(form, project, name=name, version=version)
        return next(iter(self._all(form, where, form.table.c.id.desc(), limit=1)), None)

    def _versions(self, form: Form[Any], project: str, name: str | None) -> list[KeptVersion]:
        table = form.table.c
        columns = [table[column] for column in ("name", "version", "created_at", "project")]
        where = self._where(form, project, name=name)
        with self._reading() as connection:
            found = connection.execute(select(*columns).where(*where).order_by(table.name, table.id.desc()))
            return [KeptVersion(*row) for row in found]

    def add_review_items(self, rows: Sequence[ReviewItem]) -> int:
        """Add pairs to the queue; return how many are new. One that is there keeps its state."""
        return self._add(REVIEW, rows)

    def review_items(
        self,
        *,
        project: str = DEFAULT_PROJECT,
        state: ReviewState | None = None,
        after: tuple[float, str, str] | None = None,
        limit: int | None = None,
    ) -> list[ReviewItem]:
        """Return pairs, the most urgent first, then the oldest; ``after`` goes on behind a priority, a time and a key."""
        table = REVIEW.table.c
        where = self._where(REVIEW, project, state=state)
        if after is not None:
            priority, created_at, key = after
            behind = tuple_(table.created_at, table.item_key) > tuple_(words(created_at), words(key))
            where.append(or_(table.priority < priority, and_(table.priority == priority, behind)))
        return self._all(REVIEW, where, table.priority.desc(), table.created_at, table.item_key, limit=limit)

    def update_review_item(
        self, item_key: str, change: Callable[[ReviewItem], ReviewItem | None], *, project: str = DEFAULT_PROJECT
    ) -> ReviewItem | None:
        """Change a pair in one transaction, so that two reviewers cannot reserve it at once; return what it became.

        ``change`` returns None to leave it as it is. Raises MissingInput if the queue has no such pair.
        """
        return self._change(REVIEW, project, change, _missing(project, item_key), item_key=item_key)

    def add_rating(
        self, item_key: str, reviewer: str, grade: int, at: Moment, *, project: str = DEFAULT_PROJECT, note: str = ""
    ) -> None:
        """Keep what a reviewer said; said again, it replaces what the same reviewer said before.

        Raises MissingInput if the queue has no such pair.
        """
        rating = StoredRating(item_key, reviewer, grade, timestamp(at), note, project)
        with self._writing() as connection:
            where = self._where(REVIEW, project, item_key=item_key)
            if connection.execute(select(REVIEW.table.c.id).where(*where)).first() is None:
                raise MissingInput(_missing(project, item_key))
            insert(connection, RATING.table, [RATING.row(rating)], key=RATING.key, replace=True)

    def delete_rating(self, item_key: str, reviewer: str, *, project: str = DEFAULT_PROJECT) -> bool:
        """Take back what a reviewer said; return whether there was anything."""
        return bool(self._delete(RATING.table, *self._where(RATING, project, item_key=item_key, reviewer=reviewer)))

    def ratings(self, *, project: str = DEFAULT_PROJECT, item_keys: Sequence[str] | None = None) -> list[StoredRating]:
        """Return what everybody said, by pair and reviewer."""
        table = RATING.table.c
        return self._all(RATING, self._where(RATING, project, item_key=item_keys), table.item_key, table.reviewer)

    def backlog(self, *, project: str = DEFAULT_PROJECT) -> dict[str, Any]:
        """Return how many pairs are in each state, all of them as ``total``, and since when the oldest one waits."""
        table = REVIEW.table.c
        found = select(table.state, func.count(), func.min(table.created_at)).where(*self._where(REVIEW, project))
        with self._reading() as connection:
            states = {state: (count, oldest) for state, count, oldest in connection.execute(found.group_by(table.state))}
        counts = {state: states.get(state, (0, None))[0] for state in get_args(ReviewState)}
        oldest = states.get("pending_review", (0, None))[1]
        return {**counts, "total": sum(counts.values()), "oldest_pending_at": oldest}

    def create_test(self, state: ABTest) -> None:
        """Start a sequential test; raises InputError if the feature has one already."""
        if not self._add(TEST, [state]):
            raise InputError(f"feature {state.feature_id!r} has a test already; look at it: ringtrue test status")

    def test(self, feature_id: str, *, project: str = DEFAULT_PROJECT) -> ABTest | None:
        """Return a feature's test as far as it has come; None if there is none."""
        return self._one(TEST, project, feature_id=feature_id)

    def tests(self, *, project: str = DEFAULT_PROJECT) -> list[ABTest]:
        """Return the tests of a project by feature."""
        return self._all(TEST, self._where(TEST, project), TEST.table.c.feature_id)

    def update_test(
        self,
        feature_id: str,
        query_id: str,
        change: Callable[[ABTest], ABTest],
        *,
        project: str = DEFAULT_PROJECT,
        point: Callable[[ABTest], TestPoint | None] | None = None,
    ) -> ABTest | None:
        """Count one query in a test and return the new state; None if the query was counted before.

        Reading, ``change`` and writing are one transaction that holds the test: whoever else updates it waits, and sees this
        state. ``point`` makes a point of the test's path from the new state; it is asked at every query at first, ever more
        seldom later, and at the decision. A test that begins anew loses its path. If ``change`` raises, nothing is counted.
        Raises MissingInput if there is no such test.
        """
        counted = {"project": words(project), "feature_id": words(feature_id), "query_id": words(query_id)}
        before: list[ABTest] = []
        with self._writing() as connection:

            def advance(state: ABTest) -> ABTest | None:
                before.append(state)
                return change(state) if insert(connection, ab_counted, [counted]) else None

            missing = f"project {project!r} has no test of feature {feature_id!r}; start it: ringtrue test create {feature_id}"
            new = change_row(connection, TEST, self._where(TEST, project, feature_id=feature_id), advance, missing)
            if new is None:
                return None
            if new.started_at != before[0].started_at:
                connection.execute(delete(POINT.table).where(*self._where(POINT, project, feature_id=feature_id)))
            if point is not None and (_is_due(new.sample_count) or new.decision != before[0].decision):
                made = point(new)
                if made is not None:
                    insert(connection, POINT.table, [POINT.row(made)], key=POINT.key, replace=True)
            return new

    def test_points(self, feature_id: str, *, project: str = DEFAULT_PROJECT) -> list[TestPoint]:
        """Return the path of a feature's test in the order of its queries, as far as it was kept."""
        return self._all(POINT, self._where(POINT, project, feature_id=feature_id), POINT.table.c.sample_count)

    def set_flag(self, flag: Flag, *, who: str, at: Moment, why: str = "", expected: Flag | EllipsisType | None = ...) -> bool:
        """Set a flag and write down who did it, when, why, and what it was before; return True.

        If ``expected`` is given and the flag is another by now (None: if it is there), nothing changes and False is returned:
        two who change a flag at once cannot undo each other's change unseen.
        """
        row, table = FLAG.row(flag), FLAG.table
        where = self._where(FLAG, flag.project, name=flag.name)
        with self._writing() as connection:
            before: Flag | None = None
            made = insert(connection, table, [row]) if expected is None or expected is ... else 0
            if not made:
                found = connection.execute(select(table).where(*where).with_for_update()).mappings().first()
                before = None if found is None else FLAG.read(found)
                if before is None or expected is None or (expected is not ... and before != FLAG.read(FLAG.row(expected))):
                    return False
                connection.execute(update(table).where(*where).values(row))
            detail = {"before": None if before is None else asdict(before), "after": asdict(flag), "why": why}
            entry = AuditEntry(timestamp(at), who, "set flag", flag.name, detail, flag.project)
            insert(connection, AUDIT.table, [AUDIT.row(entry)])
            return True

    def flag(self, name: str, *, project: str = DEFAULT_PROJECT) -> Flag | None:
        """Return a flag; None if there is none of that name."""
        return self._one(FLAG, project, name=name)

    def flags(self, *, project: str = DEFAULT_PROJECT) -> list[Flag]:
        """Return the flags of a project by name."""
        return self._all(FLAG, self._where(FLAG, project), FLAG.table.c.name)

    def add_audit(self, entry: AuditEntry) -> None:
        """Write down who changed what; entries are never changed."""
        self._add(AUDIT, [entry])

    def audit(
        self,
        *,
        project: str = DEFAULT_PROJECT,
        subject: str | None = None,
        what: str | None = None,
        since: Moment | None = None,
        until: Moment | None = None,
        limit: int | None = None,
    ) -> list[AuditEntry]:
        """Return who changed what, the newest first: all, of one subject, of one kind, from a time on, up to a time."""
        table = AUDIT.table.c
        where = self._where(AUDIT, project, since=since, subject=subject, what=what)
        if until is not None:
            where.append(table.at <= timestamp(until))
        return self._all(AUDIT, where, table.at.desc(), table.id.desc(), limit=limit)


def _is_due(samples: int) -> bool:
    """True for every query up to 200, later for about one in every half per cent more: a path of any length stays short."""
    return samples % max(1, samples // ALL_POINTS) == 0


def _missing(project: str, item_key: str) -> str:
    return f"the review queue of project {project!r} has no item {item_key!r}"
