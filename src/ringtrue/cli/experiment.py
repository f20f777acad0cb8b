"""``ringtrue experiment``: what was tried, what came of it, and whether it was kept."""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any

import typer

from ringtrue.cli import lib, show
from ringtrue.cli.compare import HEADERS, measure_record, measure_row
from ringtrue.cli.options import BASELINE, Json, Overwrite, check_new, command_group, utc_now
from ringtrue.config import load_config
from ringtrue.errors import InputError, MissingInput, SpecError

app = command_group("Track what was tried, with its numbers and verdict.")
FILE = Path("experiments.json")
File = Annotated[Path, typer.Option("--file", "-f", help="The file that holds the experiments.")]


@app.command()
def add(
    run: Annotated[Path, typer.Argument(help="Run folder of the changed search, made by ringtrue eval.")],
    baseline: Annotated[
        Path | None,
        typer.Option(
            "--baseline", "-b", help="Run folder or baseline file before the change; default: ringtrue-baseline.json."
        ),
    ] = None,
    description: Annotated[str, typer.Option("--description", "-d", help="What was tried; default: the changes found.")] = "",
    change: Annotated[
        list[str] | None, typer.Option(help="A change, such as chunking.max_tokens=256; default: the changes found.")
    ] = None,
    verdict: Annotated[str, typer.Option(help="Your own verdict: 'REJECTED (too slow)'; default: from gate and test.")] = "",
    measure: Annotated[str | None, typer.Option("--measure", "-m", help="The measure whose test decides.")] = None,
    day: Annotated[datetime | None, typer.Option("--date", formats=["%Y-%m-%d"], help="The date; default: today.")] = None,
    file: File = FILE,
    json: Json = False,
) -> None:
    """Record a run as an experiment: its numbers, the changes since the baseline, and a verdict with its reason.

    Rejected: it breaks a gate rule that the baseline meets, or is worse in the paired test. Accepted: better in that test.
    Otherwise undecided.

    Example: ringtrue experiment add runs/small-chunks --baseline runs/before -d "Reduce chunk size to 256 tokens"
    Example: ringtrue experiment add runs/rerank --verdict "REJECTED (twice the latency)"
    """
    before = baseline or (BASELINE if BASELINE.is_file() else None)
    if before is None and not verdict:
        raise MissingInput("nothing to compare with; name a run or baseline with --baseline, or add your own --verdict")
    commit = lib.run.commit_of(Path.cwd(), beside=file)
    arm = None if before is None else lib.experiment.open_arm(before)
    changes = dict(lib.experiment.given_change(text) for text in change or ())
    places: dict[str, Any] = {
        "run": _from(file, run),
        "baseline": None if before is None else _from(file, before),
        "commit": commit,
    }
    said = lib.experiment.check_verdict(verdict) if verdict else ""
    given = lib.experiment.Experiment("", (day or utc_now()).date().isoformat(), description, changes, verdict=said, **places)
    policy = lib.verdict.Policy.configured(load_config())
    made = lib.experiment.experiment_of(lib.run.open_run(run), arm, given, measure=measure, policy=policy)
    (added,) = lib.experiment.ExperimentFile(file).add([made])
    said = f"{added.id} written to {file}: {added.description}\n{added.verdict}"
    if commit is not None:
        show.note(f"the run does not record its commit; the one checked out now is recorded instead: {_commit(commit)}")
    show.result(json, {"file": file, **added.as_dict()}, said)


@app.command("list")
def list_experiments(
    accepted: Annotated[bool, typer.Option("--accepted", help="Only accepted experiments.")] = False,
    file: File = FILE,
    json: Json = False,
) -> None:
    """List the experiments, oldest first.

    Example: ringtrue experiment list --accepted
    """
    found = [one for one in _opened(file).all() if not accepted or one.decision == "ACCEPTED"]
    # The measures that most of them have; one experiment with forty would hide the others.
    counts = Counter(_measure(name) for one in found for name in one.metrics)
    columns = [name for name, _ in counts.most_common(4)]
    rows = []
    for one in found:
        metrics = {_measure(name): value for name, value in one.metrics.items()}
        numbers = [show.number(metrics.get(name)) for name in columns]
        rows.append(
            [one.id, one.date, show.short(one.description), one.decision or show.short(one.verdict, 20) or "—", *numbers]
        )
    show.result(
        json,
        {"file": file, "experiments": [one.as_dict() for one in found]},
        show.Table(("id", "date", "description", "verdict", *columns), rows, 4),
        notes=[] if found else ["no experiment was accepted yet" if accepted else "there is no experiment yet"],
    )


@app.command("show")
def show_experiment(
    experiment: Annotated[str, typer.Argument(metavar="ID", help="Like exp-001.")], file: File = FILE, json: Json = False
) -> None:
    """Show everything recorded about one experiment.

    Example: ringtrue experiment show exp-001
    """
    found = lib.experiment.find(_opened(file), experiment)
    told = {
        "commit": found.commit, "golden set": found.golden, "corpus": found.corpus, "run": found.run,
        "baseline": found.baseline, **found.extra,
    }  # fmt: skip
    tables = [
        show.Table((title, "value"), [[name, _cell(value)] for name, value in facts.items() if value is not None], 2)
        for title, facts in (("changes", found.config_changes), ("results", found.metrics), ("made with", told))
    ]
    show.result(json, found.as_dict(), _headline(found), *tables)


@app.command("compare")
def compare_experiments(
    a: Annotated[str, typer.Argument(metavar="ID", help="Like exp-001.")],
    b: Annotated[str, typer.Argument(metavar="ID", help="Like exp-002.")],
    measure: Annotated[str | None, typer.Option("--measure", "-m", help="The measure whose test is the verdict.")] = None,
    file: File = FILE,
    json: Json = False,
) -> None:
    """Compare two experiments, with all tests if both run folders still exist.

    Example: ringtrue experiment compare exp-001 exp-002
    """
    ledger = _opened(file)
    one, other = lib.experiment.find(ledger, a), lib.experiment.find(ledger, b)
    runs = [_run_of(experiment, file) for experiment in (one, other)]
    tested: lib.verdict.Comparison | None = None
    if all(run is not None for run in runs):
        first, second = (lib.run.open_run(run) for run in runs if run is not None)
        tested = lib.verdict.compare(first, second, primary=measure)
    sides = [{_measure(name): value for name, value in side.metrics.items()} for side in (one, other)]
    both = {name: (sides[0].get(name), sides[1].get(name)) for name in dict.fromkeys([*sides[0], *sides[1]])}
    changed = {
        name: (one.config_changes.get(name), other.config_changes.get(name))
        for name in dict.fromkeys([*one.config_changes, *other.config_changes])
    }
    record = {
        "a": one.as_dict(),
        "b": other.as_dict(),
        "metrics": {name: {"a": x, "b": y, "diff": _diff(x, y)} for name, (x, y) in both.items()},
        "config_changes": {name: {"a": x, "b": y} for name, (x, y) in changed.items()},
        "verdict": tested and tested.verdict,
        "measures": tested and {name: measure_record(found) for name, found in tested.measures.items()},
    }
    rows = [[name, x, y, show.signed(_diff(x, y))] for name, (x, y) in both.items()]
    notes = []
    if one.golden != other.golden:
        notes.append(
            f"they were measured on different golden sets: {one.golden or 'not known'} and {other.golden or 'not known'}"
        )
    if tested is None:
        gone = next(experiment for experiment, run in zip((one, other), runs, strict=True) if run is None)
        notes.append(f"no test was made: the run folder of {gone.id} is missing ({gone.run or 'none was recorded'})")
    tests = tested.measures if tested else {}
    show.result(
        json,
        record,
        _headline(one),
        _headline(other),
        show.Table(("change", one.id, other.id), [[name, _cell(x), _cell(y)] for name, (x, y) in changed.items()], 3),
        show.Table(("measure", one.id, other.id, "Δ"), rows),
        show.Table(("measure", *HEADERS[2:]), [[name, *measure_row(found)[2:]] for name, found in tests.items()]),
        f"\n{other.id} against {one.id}, {tested.primary}: {tested.verdict} ({tested.reason})" if tested else "",
        notes=notes,
    )


def _headline(one: lib.experiment.Experiment) -> str:
    return f"{one.id}  {one.date}  {one.description}\n  {one.verdict or 'no verdict yet'}"


@app.command("import")
def import_experiments(
    source: Annotated[Path, typer.Argument(metavar="FILE", help="experiments.json of another project.")],
    renumber: Annotated[bool, typer.Option("--renumber", help="Give a new id to an experiment whose id is taken.")] = False,
    file: File = FILE,
    json: Json = False,
) -> None:
    """Add the experiments of another file; those that are here already, word for word, are left out.

    Example: ringtrue experiment import tests/rag-eval/experiments.json
    """
    ledger = lib.experiment.ExperimentFile(file)
    here = {one.id: one for one in ledger.all()}
    given = lib.experiment.read_experiments(source)
    known = [one.id for one in given if one.id in here and here[one.id].as_dict() == one.as_dict()]
    fresh = [one for one in given if one.id not in known]
    taken = [one.id for one in fresh if one.id in here]
    if taken and not renumber:
        raise InputError(f"{source}: '{taken[0]}' is another experiment in {file}; import with --renumber to give it a new id")
    added = ledger.add([replace(one, id="") if one.id in here else one for one in fresh])
    said = f"{show.counted(len(added), 'experiment')} added to {file}" + (f", {len(known)} were there already" if known else "")
    show.result(json, {"file": file, "added": [one.id for one in added], "known": known}, said)


@app.command("export")
def export_experiments(
    target: Annotated[Path, typer.Argument(metavar="FILE", help="A .json file to write.")],
    overwrite: Overwrite = False,
    file: File = FILE,
    json: Json = False,
) -> None:
    """Write the experiments to another file of the same form.

    Example: ringtrue experiment export all-experiments.json
    """
    check_new(target, overwrite=overwrite)
    found = _opened(file).all()
    lib.experiment.write_experiments(found, target)
    said = f"{show.counted(len(found), 'experiment')} written to {target}"
    show.result(json, {"written": target, "experiments": len(found)}, said)


def _opened(file: Path) -> lib.experiment.ExperimentFile:
    if not file.exists():
        raise MissingInput(
            f"{file}: there is no such file; add an experiment with `ringtrue experiment add`, or name it with --file"
        )
    return lib.experiment.ExperimentFile(file)


def _commit(name: str) -> str:
    """Return a commit as people read it: its short name, and whether files were changed since."""
    commit, dash, dirty = name.partition("-")
    return f"{commit[:10]}{dash}{dirty}"


def _from(file: Path, path: Path) -> str:
    """Return a path as seen from the folder of the experiments' file, so that both can move together."""
    return Path(os.path.relpath(path.resolve(), file.resolve().parent)).as_posix()


def _run_of(experiment: lib.experiment.Experiment, file: Path) -> Path | None:
    folder = None if experiment.run is None else file.parent / experiment.run
    return folder if folder is not None and (folder / "run.json").is_file() else None


def _measure(name: str) -> str:
    """Return a measure's one name: recall_at_5 and R@5 are the same row of a table."""
    try:
        return str(lib.measures.Measure.parse(name))
    except SpecError:
        return name


def _diff(a: float | None, b: float | None) -> float | None:
    return None if a is None or b is None else b - a


def _cell(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, dict):
        return ", ".join(f"{name}={_cell(item)}" for name, item in value.items())
    return "—" if value is None else str(value)
