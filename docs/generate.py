"""Writes the pages that are made from the code: measures, commands, conformance, and the overlap lines of the sets.

``python docs/generate.py`` writes them, ``--check`` only says whether they are current (exit 1 when one is not).
"""

from __future__ import annotations

import asyncio
import json
import re
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import fields
from importlib import import_module
from pathlib import Path
from typing import Any

import anyio
import typer
from mcp.shared.memory import create_client_server_memory_streams
from mcp.shared.message import SessionMessage
from mcp_types import jsonrpc_message_adapter
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS, LATEST_HANDSHAKE_VERSION, LATEST_MODERN_VERSION
from typer.testing import CliRunner

from ringtrue.cli import app
from ringtrue.golden import load, shipped, summarise
from ringtrue.measures import CATALOGUE, DEFINITIONS, Definition, Measure
from ringtrue.memory.server import build_server
from ringtrue.retrieve import ALL as RETRIEVERS
from ringtrue.retrieve import HYBRID
from ringtrue.retrieve.chunk import FORMS as CHUNKERS
from ringtrue.retrieve.connectors import KINDS
from ringtrue.retrieve.connectors import kind as connector_kind
from ringtrue.spec import show_value
from ringtrue.testing import against_reference, against_trec_eval_files
from ringtrue.testing.conformance import TREC_EVAL_CASES

ROOT = Path(__file__).parents[1]
MADE = "<!-- made by docs/generate.py; change the code, then run `make docs` -->\n"


def measures() -> str:
    """The reference of all measures."""
    lines = [
        "# Measures",
        MADE,
        "A measure is written as `Name(option=value)@k`. What `ringtrue score`, the Python API, tables, files and columns show is",
        "always this one form; the names of other tools are understood as input.",
        "",
        "| measure | means | undefined for queries |",
        "| --- | --- | --- |",
    ]
    lines += [f"| [`{_form(d)}`](#{d.name.lower()}) | {d.means} | {_undefined(d)} |" for d in CATALOGUE]
    for definition in CATALOGUE:
        lines += ["", f"## {definition.name}", "", definition.means, "", f"- Formula: {definition.formula}"]
        lines.append(f"- Cut-off: {_CUTOFFS[definition.cutoff]}")
        lines += [f"- `{name}`: {option.means}" for name, option in definition.options.items()]
        lines.append(f"- Over many queries: {_AVERAGES[definition.average]}")
        names = [name for name in dict.fromkeys((definition.snake, *definition.aliases)) if name != definition.name.lower()]
        if names:
            lines.append("- Also read as: " + ", ".join(f"`{name}`" for name in names))
        trec = [template.replace("{k:.2f}", "k").replace("{k}", "k") for template in definition.trec if template]
        if trec:
            lines.append("- trec_eval: " + ", ".join(f"`{name}`" for name in trec))
        lines.append(f"- Source: {definition.source}")
    lines += ["", *_spellings(), "", *_figures()]
    return "\n".join(lines) + "\n"


_CUTOFFS = {"none": "none", "may": "optional", "must": "needed", "level": "a recall level between 0 and 1"}
_AVERAGES = {"mean": "mean", "sum": "sum", "geometric": "geometric mean"}


def _form(definition: Definition) -> str:
    return definition.name + {"none": "", "may": "@k", "must": "@k", "level": "@0.1"}[definition.cutoff]


def _undefined(definition: Definition) -> str:
    if definition.needs_relevant:
        return "without a relevant document"
    special = {
        "SetP": "with an empty answer",
        "Judged": "with an empty answer",
        "Stale": "with an empty answer",
        "Diversity": "with an empty answer",
        "TierP": "whose answer has no item of the tier",
        "ChainCompleteness": "without a chain",
        "Forbidden": "that forbid nothing",
        "Top1Chunk": "that declare no chunk or whose answer names none",
        "Constitutional": "when there is no constitutional item",
    }
    return special.get(definition.name, "never")


def _spellings() -> Iterator[str]:
    yield "## Spellings elsewhere"
    yield ""
    yield "| measure | REST field, database column | Prometheus series |"
    yield "| --- | --- | --- |"
    for text in ("R@10", "P@5", "P(rel=2)@5", "RR", "RR@5", "AP", "nDCG@10", "nDCG(gain='exp')@10", "Success@1", "Judged@10"):
        measure = Measure.parse(text)
        name, labels = measure.prometheus
        shown = ", ".join(f'{key}="{value}"' for key, value in labels.items())
        yield f"| `{measure}` | `{measure.snake}` | `{name}{{{shown}}}` |"


def _figures() -> Iterator[str]:
    """The functions that describe many answers or compare two rankings."""
    yield "## Figures over many answers"
    yield ""
    yield "Functions of `ringtrue.measures` and `ringtrue.stats` for what is not one number per query:"
    yield ""
    for module, names in _FIGURES.items():
        for name in names:
            said = (getattr(import_module(module), name).__doc__ or "").split("\n")[0]
            yield f"- `{module}.{name}`: {said}"


_FIGURES = {
    "ringtrue.measures": (
        "channel_contribution", "fusion_reorder_rate", "expansion_impact", "latency", "error_rate", "error_rate_by",
        "abstention", "risk_coverage", "calibration", "cold_start", "personalisation_lift",
        "dedup_token_savings",
    ),
    "ringtrue.stats": ("kendall_tau_b", "ranking_tau_b", "spearman_rho", "ranking_spearman", "rbo", "jaccard", "ranking_difference"),
}  # fmt: skip


def commands() -> str:
    """The reference of all commands: their help texts."""
    pages: list[tuple[str, ...]] = [()]
    for name in _names(()):
        pages += [(name,), *((name, inner) for inner in _names((name,)) if name != "bench")]
    lines = ["# Commands", MADE]
    for words in pages:
        result = CliRunner().invoke(app, [*words, "--help"], prog_name="ringtrue", terminal_width=110)
        lines += [f"## {' '.join(('ringtrue', *words))}", "", "```text", result.output.rstrip(), "```", ""]
    return "\n".join(lines)


def _names(words: tuple[str, ...]) -> list[str]:
    command: Any = typer.main.get_command(app)
    for word in words:
        command = command.commands[word]
    return [name for name, inner in getattr(command, "commands", {}).items() if not getattr(inner, "hidden", False)]


def retrievers() -> str:
    """The reference of what a retriever expression may say, and of the connections."""
    lines = [
        "# Retrievers",
        MADE,
        "A retriever is a value written like a measure: `rrf(bm25(title=2), dense, k=60) >> mmr(0.7)`. Channels find, fusions join two or",
        "more retrievers, stages after `>>` work on the hits. Every option has a default; an expression with its defaults written out is what",
        f"keys of caches and baselines are made from. `hybrid` stands for `{HYBRID}`.",
    ]
    for kind, title in (("channel", "Channels"), ("fusion", "Fusions"), ("stage", "Stages")):
        lines += ["", f"## {title}", "", "| name | means | options |", "| --- | --- | --- |"]
        for name, row in RETRIEVERS.items():
            if row.kind == kind:
                options = ", ".join(f"`{option}={_default(value)}`" for option, value in row.options.items())
                free = " and boosts by name, `core=1.5`" if row.free is not None else ""
                lines.append(f"| `{name}` | {row.means} | {options}{free or (' ' if not options else '')} |")
    lines += [
        "",
        'The same as dictionaries: `{"fusion_method": "rrf", "rrf_k": 60}`, '
        '`{"fusion_method": "weighted", "weights": {"bm25": 0.3, "dense": 0.7}}`; in Python, as JSON on the command line, '
        'and as a table in `ringtrue.toml` (`retriever = {fusion_method = "rrf", rrf_k = 60}`).',
        "",
        "## Chunkers",
        "",
        "Passages are made at ingest, `ringtrue ingest --chunk EXPRESSION`, one way for a folder: "
        + ", ".join(f"`{form}`" for form in CHUNKERS.values())
        + ".",
        "",
        "## Connections",
        "",
        "`connect('NAME')` is the system that `[connections.NAME]` in ringtrue.toml describes; see [connect your search](../connect.md).",
        "",
        "| kind | class | settings |",
        "| --- | --- | --- |",
    ]
    for kind in KINDS:
        found = connector_kind(kind)
        settings = ", ".join(f"`{field.name}`" for field in fields(found) if field.name != "name")
        lines.append(f"| [`{kind}`](../connect/{_PAGES.get(kind, kind)}.md) | `{found.__name__}` | {settings} |")
    return "\n".join(lines) + "\n"


_PAGES = {"pgvector": "postgres", "elasticsearch": "opensearch"}


def _default(value: object) -> str:
    return "[]" if isinstance(value, tuple) else show_value(value)


def conformance() -> str:
    """What was compared with trec_eval, measure by measure."""
    folder = ROOT.parent / "shared" / "data" / "trec_eval_test"
    shipped_values = {c.measure: c for c in against_reference()}
    printed = {c.measure: c for c in against_trec_eval_files(folder)} if folder.is_dir() else None
    page = ROOT / "docs" / "conformance.md"
    if printed is None and page.is_file():
        # Without trec_eval's own files the second half cannot be made again; the page keeps what was last found with them.
        return page.read_text(encoding="utf-8")
    families = [d for d in CATALOGUE if any(d.trec)]
    lines = [
        "# Conformance with trec_eval",
        MADE,
        "Every measure that trec_eval 10 also has is compared with it, value by value. `ringtrue self-test --conformance` repeats the",
        "first comparison anywhere, offline, from reference files in the package",
        "([recipe](../tests/reference/make_reference.py)); the second needs trec_eval's own test files",
        "(`--trec-eval DIR`, the `test/` folder of its source).",
        "",
        "| measure | trec_eval | shipped reference: values, largest difference | trec_eval's test files: values, largest difference |",
        "| --- | --- | --- | --- |",
    ]
    for definition in families:
        mine = [
            Measure.parse(text) for text in {**shipped_values, **(printed or {})} if Measure.parse(text).name == definition.name
        ]
        for measure in sorted(mine, key=lambda m: (m.at is not None, m.at or 0)):
            one, other = shipped_values.get(str(measure)), (printed or {}).get(str(measure))
            cells = [f"{c.values}, {c.largest_difference:.0e}" if c else "—" for c in (one, other)]
            lines.append(f"| `{measure}` | `{measure.trec}` | {cells[0]} | {cells[1]} |")
    lines += [
        "",
        "The tolerance is 1e-9 if full values exist (the shipped reference, computed by pytrec-eval-terrier) and half of the fourth",
        "digit if only trec_eval's printed output exists. The test files compared are "
        + ", ".join(f"`{name}`" for name in dict.fromkeys(case[3] for case in TREC_EVAL_CASES))
        + ".",
        "The property tests add random runs with ties, missing queries, negative grades and empty lists, and, where the collections",
        "are at hand, all TREC-COVID round 1 and CODEC runs (tests/reference).",
        "",
        "## Where the two differ, on purpose",
        "",
        "- trec_eval refuses a run that names a document twice for one query. Here the document counts once, at its best rank, the",
        "  list closes up, and the number of removed rows is reported.",
        "- `IPrec`: trec_eval 10 rounds the number of relevant documents that a recall level needs to the nearest, version 9 (and",
        "  with it pytrec_eval) adds 0.9 and cuts. Ringtrue follows version 10.",
        "- pytrec_eval keeps scores in single precision, trec_eval 10 and Ringtrue in double: scores that differ only after the",
        "  seventh digit tie there and not here.",
        "- `RBPResidual` counts what lies below the end of the list even when every document in it is judged; trec_eval prints 0 then.",
        "- `Judged@k` counts a negative grade (pooled, not judged) as not judged; ir_measures counts it as judged.",
        "- `GMAP` per query is the AP that enters the geometric mean (at least 0.00001); trec_eval prints the mean alone.",
        "",
        "Not offered, because other measures serve their purpose better: 11pt_avg, utility, G, binG, Rndcg, ndcg_rel, relative_P,",
        "set_relative_P, set_map, Rprec_mult, gm_bpref, num_nonrel_judged_ret, unj_k (1 − Judged@k on full lists), the preference",
        "measures.",
        "",
        "Without a counterpart in trec_eval, and checked on hand-computed examples and by properties instead: "
        + ", ".join(f"`{name}`" for name, d in DEFINITIONS.items() if not any(d.trec))
        + ".",
    ]
    return "\n".join(lines) + "\n"


def rest() -> str:
    """The reference of the REST routes, from the OpenAPI document."""
    from ringtrue.service import Settings, create_app

    document = create_app(Settings(store="unused.sqlite")).openapi()
    by_tag: dict[str, list[tuple[str, str, str]]] = {}
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            says = " ".join(str(operation.get("description", "")).split("\n\n")[0].split())
            by_tag.setdefault(operation.get("tags", ["other"])[0], []).append((method.upper(), path, says))
    lines = [
        "# REST routes",
        MADE,
        "What holds for all of them (keys, errors, idempotency, lists, limits) is in [the service](../service.md); a running server describes every",
        "field at `/v1/openapi.json`.",
    ]
    for tag, rows in by_tag.items():
        lines += ["", f"## {tag}", "", "| | | |", "| --- | --- | --- |"]
        lines += [f"| {method} | `{path}` | {says} |" for method, path, says in rows]
    return "\n".join(lines) + "\n"


def overlap_line(name: str) -> str:
    """The lexical-overlap figure of a shipped set, for its README."""
    found = summarise(load(name))
    return (
        f"On average {found.mean:.0%} of a query's content words occur in the best passage of its relevant documents "
        f"(median {found.median:.0%}, {found.share_high:.0%} of the queries above 80 %); {len(found.copied)} queries are copied "
        f"from a document. Made by `ringtrue golden validate {name}`.\n"
    )


def set_readme(name: str) -> tuple[Path, str]:
    """A set's README with its overlap line in place."""
    path = ROOT / "src" / "ringtrue" / "golden" / "sets" / name / "README.md"
    text = path.read_text(encoding="utf-8")
    mark = "<!-- lexical-overlap -->\n"
    head, _, tail = text.partition(mark)
    # The old figure, if there is one, is the paragraph right after the mark.
    rest = re.sub(r"\A\n?On average [^\n]*\n", "", tail)
    return path, f"{head}{mark}\n{overlap_line(name)}{rest}"


def requirements() -> str:
    """What Ringtrue promises, with the tests that hold it."""
    lines = [
        "# Requirements",
        MADE,
        "What Ringtrue promises, with the tests that hold it. The list is kept in [tests/requirements.toml](../tests/requirements.toml).",
    ]
    for section, rows in tomllib.loads((ROOT / "tests" / "requirements.toml").read_text(encoding="utf-8")).items():
        lines += ["", f"## {section.replace('_', ' ').capitalize()}", "", "| id | what holds | tests |", "| --- | --- | --- |"]
        for name, (says, *tests) in rows.items():
            lines.append(f"| {name} | {says} | {', '.join(f'`{test}`' for test in tests) or 'the benchmark'} |")
    return "\n".join(lines) + "\n"


def shape() -> tuple[Path, str]:
    """The page of the architecture with the table of figures of tests/shape.py."""
    sys.path.append(str(ROOT / "tests"))
    from shape import markdown

    path = ROOT / "docs" / "architecture.md"
    begin, end = "<!-- figures of tests/shape.py -->\n", "<!-- end of figures -->"
    head, _, rest = path.read_text(encoding="utf-8").partition(begin)
    return path, head + begin + markdown() + "\n" + end + rest.partition(end)[2]


def mcp_answers() -> str:
    """Return the first answers of the memory's MCP server, which ``mcp_start`` gives before the SDK is loaded."""
    client = {"name": "ringtrue", "version": "1"}
    keys = {"protocolVersion": LATEST_MODERN_VERSION, "clientInfo": client, "clientCapabilities": {}}
    new = {"_meta": {f"io.modelcontextprotocol/{key}": value for key, value in keys.items()}}
    old = {"protocolVersion": LATEST_HANDSHAKE_VERSION, "capabilities": {}, "clientInfo": client}
    greeting, listed = asyncio.run(_asked(("initialize", old), ("notifications/initialized", {}), ("tools/list", {})))
    discovery, added = asyncio.run(_asked(("server/discover", new), ("tools/list", new)))
    tools = added.pop("tools")
    assert listed == {"tools": tools}, "the two protocols list other tools; mcp_start must keep both lists"
    recorded = {"versions": HANDSHAKE_PROTOCOL_VERSIONS, "initialize": greeting, "server/discover": discovery}
    return json.dumps({**recorded, "added": added, "tools": tools}, indent=1, ensure_ascii=False) + "\n"


async def _asked(*messages: tuple[str, dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the results of the requests in a conversation with a new server."""
    server, results = build_server("")._lowlevel_server, []
    async with create_client_server_memory_streams() as ((answers, questions), streams), anyio.create_task_group() as group:
        group.start_soon(server.run, *streams, server.create_initialization_options())
        for method, params in messages:
            told = {"jsonrpc": "2.0", "method": method, "params": params}
            request = told if method.startswith("notifications/") else {**told, "id": method}
            await questions.send(SessionMessage(jsonrpc_message_adapter.validate_python(request)))
            if request is not told:
                results.append((await answers.receive()).message.model_dump(by_alias=True, exclude_unset=True)["result"])
        await questions.aclose()
    return results


def pages() -> Iterator[tuple[Path, str]]:
    """Yield every generated file with the content it should have."""
    yield ROOT / "docs" / "reference" / "measures.md", measures()
    yield ROOT / "docs" / "reference" / "commands.md", commands()
    yield ROOT / "docs" / "reference" / "retrievers.md", retrievers()
    yield ROOT / "docs" / "reference" / "rest.md", rest()
    yield ROOT / "docs" / "conformance.md", conformance()
    yield ROOT / "docs" / "requirements.md", requirements()
    yield ROOT / "src" / "ringtrue" / "memory" / "mcp_answers.json", mcp_answers()
    yield shape()
    for name in shipped():
        yield set_readme(name)


def main() -> int:
    """Write the pages, or check them."""
    stale = [(path, text) for path, text in pages() if not path.is_file() or path.read_text(encoding="utf-8") != text]
    for path, text in stale:
        print(("stale: " if "--check" in sys.argv else "written: ") + str(path.relative_to(ROOT)))
        if "--check" not in sys.argv:
            path.write_text(text, encoding="utf-8")
    return 1 if stale and "--check" in sys.argv else 0


if __name__ == "__main__":
    sys.exit(main())
