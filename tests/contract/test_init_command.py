"""``ringtrue init`` writes a start that works right away, and nothing over what is there."""

from __future__ import annotations

import json
import os
import shlex
import socket
import subprocess
import sys
import threading
import tomllib
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import yaml

from ringtrue.extras import InstallSource


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    for name in [name for name in os.environ if name.startswith(("RINGTRUE_", "GITHUB_", "GITLAB_", "CI_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("RINGTRUE_CACHE", str(tmp_path / "cache"))
    here = tmp_path / "new"
    here.mkdir()
    monkeypatch.chdir(here)
    return here


JUDGE = ["ringtrue eval", "ringtrue baseline update", "ringtrue gate"]


def printed(out: str) -> list[str]:
    """The commands that init names as the next ones."""
    return [line.split(". ", 1)[1] for line in out.splitlines() if line.strip()[:2] in ("1.", "2.", "3.", "4.")]


def test_with_yes_in_an_empty_folder_the_commands_it_prints_work(ringtrue, folder) -> None:
    outcome = ringtrue("init", "--yes")
    assert outcome.code == 0, outcome.err
    commands = printed(outcome.out)
    assert commands == ["ringtrue ingest documents --retriever bm25 --remove-missing", *JUDGE]
    assert commands[0] in Path("ringtrue.toml").read_text()
    assert commands[0] in Path("golden/start.yaml").read_text()
    assert tomllib.loads(Path("ringtrue.toml").read_text())["ci"]["setup"] == commands[0]
    for command in commands:
        done = ringtrue(*shlex.split(command)[1:])
        assert done.code == 0, (command, done.out, done.err)
    assert Path("ringtrue-baseline.json").exists()
    assert "PASS" in done.out
    assert "samples" in outcome.err
    for file in ("ringtrue.toml", "golden/start.yaml", ".github/workflows/ringtrue.yml", ".gitignore"):
        assert f"wrote {file}" in outcome.out
        assert Path(file).exists()


def test_the_pipeline_installs_ringtrue_from_where_it_came_or_asks_for_a_source(ringtrue, folder, monkeypatch) -> None:
    monkeypatch.setattr("ringtrue.cli.init.installed_source", lambda: InstallSource("/src/ringtrue", editable=True))
    outcome = ringtrue("init", "--yes", "--ci", "gitlab", "--dir", "local")
    assert "cannot install Ringtrue from /src/ringtrue; set its variable RINGTRUE_SOURCE to a Git URL" in outcome.err
    assert 'RINGTRUE_SOURCE: ""' in Path("local/.gitlab/ringtrue.yml").read_text()
    monkeypatch.setattr("ringtrue.cli.init.installed_source", lambda: InstallSource("git+https://git.example.com/r@4f2a"))
    outcome = ringtrue("init", "--yes", "--ci", "gitlab", "--dir", "git")
    assert "RINGTRUE_SOURCE" not in outcome.err
    assert 'RINGTRUE_SOURCE: "git+https://git.example.com/r@4f2a"' in Path("git/.gitlab/ringtrue.yml").read_text()


def test_an_http_search_that_does_not_answer_gets_its_address_and_comments(ringtrue, folder) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        port = closed.getsockname()[1]
        outcome = ringtrue("init", "--yes", "--search", "http", "--where", f"http://127.0.0.1:{port}/search")
    assert outcome.code == 0, outcome.err
    assert "the endpoint cannot be reached" in outcome.err
    assert "the pipeline does not start your search" in outcome.err
    text = Path("ringtrue.toml").read_text()
    settings = tomllib.loads(text)
    assert settings["connections"]["search"] == {"kind": "http", "url": "http://127.0.0.1:{port}/search", "port": port}
    assert "# the endpoint cannot be reached" in text
    assert '# params = {q = "{text}", k = "{k}"}' in text
    assert settings["ci"] == {}
    assert "\n# serve = " in text
    assert "Next once the endpoint answers:" in outcome.out
    assert printed(outcome.out)[0].startswith(f"ringtrue init --yes --search http --where http://127.0.0.1:{port}/search")


@pytest.mark.parametrize("inside", ["", "svc/shop"])
def test_the_pipelines_are_those_of_the_repository(ringtrue, folder, inside) -> None:
    subprocess.run(["git", "init", "-q", "-b", "trunk"], check=True)
    outcome = ringtrue("init", "--yes", "--ci", "both", *(["--dir", inside] if inside else []))
    assert outcome.code == 0, outcome.err
    job, place = ("ringtrue-svc-shop", "svc/shop/") if inside else ("ringtrue", "")
    assert f"wrote .github/workflows/{job}.yml\n" in outcome.out
    flow = yaml.load(Path(f".github/workflows/{job}.yml").read_text(), yaml.BaseLoader)
    assert flow["on"]["push"]["branches"] == ["trunk"]
    assert flow["on"]["pull_request"]["paths"][0] == f"{place}ringtrue.toml"
    assert flow["jobs"]["ringtrue"].get("defaults", {}).get("run", {}).get("working-directory", "") == place
    steps = flow["jobs"]["ringtrue"]["steps"]
    assert steps[-1]["with"]["path"] == f"{place}ringtrue-out"
    assert steps[-2]["run"] == ("ringtrue ci --key ringtrue-svc-shop" if inside else "ringtrue ci")
    lab = yaml.safe_load(Path(f".gitlab/{job}.yml").read_text())[job]
    assert (lab["script"][0] == f'cd "{place}"') is bool(inside)
    assert lab["artifacts"]["reports"]["junit"] == f"{place}ringtrue-out/junit.xml"
    assert yaml.safe_load(Path(".gitlab-ci.yml").read_text()) == {"include": [{"local": f".gitlab/{job}.yml"}]}


class OwnNames(BaseHTTPRequestHandler):
    """A search by POST whose ids are called ``ref``; a path of /nameless leaves them out, /locked wants a key."""

    def do_POST(self) -> None:
        if self.path == "/locked" and self.headers["Authorization"] != "Bearer secret":
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send_error(401)
            return
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        texts = {"p1": "the pool", "p2": "the sauna", "p3": "the bar"}
        ranked = sorted(texts, key=lambda ref: (texts[ref] != asked.get("question"), ref))[: asked.get("limit", 3)]
        hits = [{"heading": texts[ref].title(), "body": texts[ref]} for ref in ranked]
        if self.path != "/nameless":
            hits = [{"ref": ref} | hit for ref, hit in zip(ranked, hits, strict=True)]
        body = json.dumps({"items": hits}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self) -> None:
        self.send_error(405)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def address() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), OwnNames) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def start_at(address: str) -> tuple[str, ...]:
    return ("init", "--yes", "--search", "http", "--where", address, "--question", "the sauna")


FOUND = {"body": {"question": "{text}", "limit": "{k}"}, "hits": "items", "score": "", "title": "heading", "text": "body"}


def test_without_an_id_the_other_settings_are_written(ringtrue, folder, address) -> None:
    outcome = ringtrue(*start_at(f"{address}/nameless"))
    assert outcome.code == 0, outcome.err
    assert "only set id in [connections.search]" in outcome.err
    text = Path("ringtrue.toml").read_text()
    settings = tomllib.loads(text)["connections"]["search"]
    assert {name: settings[name] for name in FOUND} == FOUND
    assert "id" not in settings
    assert '# No field of a hit is surely the id, a text or whole number that differs in each hit; name it:\n# id = "…"' in text


def test_the_second_run_completes_settings_that_nobody_has_touched(ringtrue, folder, address) -> None:
    ringtrue(*start_at("http://localhost:9/search"))  # nothing listens at port 9
    text = Path("ringtrue.toml").read_text()
    again = (
        "# ringtrue init --yes --search http --where http://localhost:9/search --question 'the sauna' --name start --ci github"
    )
    assert again in text
    Path("ringtrue.toml").write_text(text.replace("p95 = 500", "p95 = 400"))
    again = ringtrue(*start_at(f"{address}/search"))
    assert "completed [connections.search] in ringtrue.toml" in again.out
    settings = tomllib.loads(Path("ringtrue.toml").read_text())
    assert settings["connections"]["search"]["id"] == "ref"
    assert {name: settings["connections"]["search"][name] for name in FOUND} == FOUND
    assert settings["gate"]["latency"]["p95"] == 400
    for file in (".gitignore", ".gitlab-ci.yml"):
        assert f"add to {file}" not in again.err, "the first run wrote it"
    assert ringtrue("search", "the sauna", "--retriever", "connect('search')").out.count("p2") == 1
    third = ringtrue(*start_at(f"{address}/search"))
    assert "left  ringtrue.toml as it is" in third.out
    assert "[connections.search]" not in third.out, "they are in the file"


def test_an_endpoint_with_a_key_is_probed_after_its_variable_was_named(ringtrue, folder, address, monkeypatch) -> None:
    monkeypatch.setenv("SHOP", "secret")
    refused = ringtrue(*start_at(f"{address}/locked"))
    assert "set token_env, or user_env and password_env, in [connections.search] of ringtrue.toml and run init" in refused.err
    toml = Path("ringtrue.toml")
    toml.write_text(toml.read_text() + '\ntoken_env = "SHOP"\n')
    again = ringtrue(*start_at(f"{address}/locked"))
    assert "completed [connections.search] in ringtrue.toml" in again.out, again.err
    settings = tomllib.loads(toml.read_text())["connections"]["search"]
    assert settings == {
        "kind": "http",
        "url": settings["url"],
        "port": settings["port"],
        "id": "ref",
        "token_env": "SHOP",
        **FOUND,
    }
    assert ringtrue("search", "the sauna", "--retriever", "connect('search')").out.count("p2") == 1
    elsewhere = ringtrue(*start_at(f"{address}/locked".replace("127.0.0.1", "localhost")))
    assert "HTTP 401" in elsewhere.err, "a key goes to its own host only"


def test_a_port_in_braces_is_kept_and_asked_if_it_is_known(ringtrue, folder, address, monkeypatch) -> None:
    place = "http://127.0.0.1:{port}/search"
    unknown = ringtrue(*start_at(place), "--serve", "python app.py {port}")
    assert unknown.code == 0, unknown.err
    assert "no port for {port}" in unknown.err
    settings = tomllib.loads(Path("ringtrue.toml").read_text())
    assert settings["connections"]["search"] == {"kind": "http", "url": place}
    assert settings["ci"]["serve"] == "python app.py {port}"
    monkeypatch.setenv("RINGTRUE_PORT", address.rpartition(":")[2])
    known = ringtrue(*start_at(place), "--serve", "python app.py {port}")
    assert "completed [connections.search]" in known.out, known.err
    settings = tomllib.loads(Path("ringtrue.toml").read_text())["connections"]["search"]
    assert (settings["url"], settings["id"]) == (place, "ref")
    assert "does not contain {port}" not in known.err


def test_a_start_command_without_its_port_is_noted(ringtrue, folder, address) -> None:
    outcome = ringtrue(*start_at(f"{address}/search"), "--serve", "python app.py --port 8000")
    assert "serve does not contain {port}; CI chooses a free port" in outcome.err


def test_questions_about_an_http_search_include_a_query_that_finds_something(ringtrue, folder, address) -> None:
    outcome = ringtrue("init", stdin=f"http\n{address}/search\n\nthe sauna\n\nhotel\nnone\n".encode())
    assert outcome.code == 0, outcome.err
    assert "a search with these settings works (3 documents for 'the sauna')" in outcome.err
    assert printed(outcome.out)[2:] == JUDGE[:2], "CI needs a baseline"


def test_secrets_in_an_address_are_not_written_unnoticed(ringtrue, folder, address) -> None:
    outcome = ringtrue(*start_at(f"{address}/search?api_key=SECRET"))
    assert "ringtrue.toml contains the value of 'api_key'" in outcome.err
    assert 'api_key=SECRET"' in Path("ringtrue.toml").read_text()


def test_settings_are_shown_if_the_file_has_others(ringtrue, folder, address) -> None:
    Path("ringtrue.toml").write_text('[connections.search]\nkind = "http"\nurl = "http://localhost:1/mine"\n')
    Path(".gitignore").write_text("/.ringtrue\n")
    outcome = ringtrue(*start_at(f"{address}/search"))
    assert "left  ringtrue.toml as it is" in outcome.out
    block = "[connections.search]" + outcome.out.partition("[connections.search]")[2].partition("\nNext:")[0]
    assert tomllib.loads(block)["connections"]["search"]["id"] == "ref"
    assert "mine" in Path("ringtrue.toml").read_text()
    assert "add to .gitignore: reports/ ringtrue-out/" in outcome.err
    assert ringtrue(*start_at(f"{address}/search"), "--json").json["paste"].strip() == block.strip()


def test_a_start_for_a_python_function_works_and_its_gate_can_fail(ringtrue, folder, monkeypatch) -> None:
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.delitem(sys.modules, "my_search", raising=False)
    outcome = ringtrue("init", "--yes", "--search", "python", "--ci", "none")
    assert outcome.code == 0, outcome.err
    assert printed(outcome.out) == JUDGE
    assert "my_search.py, documents/ and golden/start.yaml are samples" in outcome.err
    for command in JUDGE:
        done = ringtrue(*shlex.split(command)[1:])
        assert done.code == 0, (command, done.out, done.err)
    run = sorted(Path(".ringtrue/runs").iterdir())[-1]
    assert ringtrue("gate", "--run", run).code == 0
    Path("my_search.py").write_text(Path("my_search.py").read_text().replace("most_common(k)", "most_common()[:-k:-1]"))
    assert ringtrue("gate", "--run", run).code == 3, "the run is not of this function any more"
    assert ringtrue("gate").code == 1
    again = ringtrue("init", "--yes", "--search", "python", "--ci", "none", "--json").json
    assert again["written"] == []


def test_a_python_function_that_is_there_stays_and_gets_examples_that_fit(ringtrue, folder) -> None:
    Path("shop").mkdir()
    Path("shop/search.py").write_text("def find(text, k):\n    return ['a']\n")
    Path("documents").mkdir()
    Path("documents/mine.md").write_text("mine")
    outcome = ringtrue("init", "--yes", "--search", "python", "--where", "shop.search:find", "--overwrite", "--json").json
    assert "shop/search.py" not in outcome["written"]
    assert "connect(" not in Path("golden/start.yaml").read_text() + " ".join(outcome["next"])
    assert [path.name for path in Path("documents").iterdir()] == ["mine.md"]
    done = subprocess.run(
        shlex.split(outcome["next"][0].replace("python", sys.executable, 1)), capture_output=True, text=True, check=False
    )
    assert done.stdout == "['a']\n", done.stderr
    missing = ringtrue(
        "init", "--yes", "--search", "python", "--where", "other.py:find", "--dir", ".", "--name", "two", "--json"
    )
    assert "sample-documents/printing.md" in missing.json["written"], "never among the user's own"


def test_the_starter_set_is_sound_and_no_copy_of_its_documents(ringtrue, folder) -> None:
    ringtrue("init", "--yes", "--ci", "none")
    assert ringtrue("golden", "validate", "golden/start.yaml").code == 0
    found = ringtrue("golden", "show", "golden/start.yaml", "--json").json
    assert found["queries"] >= 20
    assert found["provisional"] is True
    texts = {path.name: path.read_text().lower() for path in Path("documents").iterdir()}
    for query in yaml.safe_load(Path("golden/start.yaml").read_text())["queries"]:
        assert not any(query["query_text"].lower() in text for text in texts.values())


def test_a_changed_search_is_caught_by_the_start(ringtrue, folder) -> None:
    """A start whose gate cannot fail would be no start."""
    ringtrue("init", "--yes", "--ci", "none")
    for command in (["eval", "--no-report"], ["baseline", "update"]):
        assert ringtrue(*command).code == 0
    assert ringtrue("gate", "--retriever", "bm25 >> top(1)", "--allow", "cut-off", "--allow", "depth").code == 1


def test_of_a_folder_of_documents_a_provisional_set_is_made(ringtrue, folder) -> None:
    notes = folder / "my notes"
    notes.mkdir()
    for name, text in {"pool": "opens at seven", "spa": "sauna and massage", "bar": "closes at one"}.items():
        (notes / f"{name}.md").write_text(f"# The {name}\n\nIt {text}.\n")
    (notes / "late-arrival.txt").write_text("Ring the bell.")
    outcome = ringtrue("init", "--yes", "--where", "my notes", "--name", "hotel", "--ci", "none")
    assert outcome.code == 0, outcome.err
    assert "provisional" in outcome.err
    golden = yaml.safe_load(Path("golden/hotel.yaml").read_text())
    judged = {judgment["doc_id"] for query in golden["queries"] for judgment in query["relevant_docs"]}
    assert judged == {"my notes/pool.md", "my notes/spa.md", "my notes/bar.md", "my notes/late-arrival.txt"}
    record = ringtrue("eval", "--no-report", "--json").json
    assert record["metrics"]["R@5"] >= 0.75
    assert sorted(path.name for path in notes.iterdir()) == ["bar.md", "late-arrival.txt", "pool.md", "spa.md"]
    setup = tomllib.loads(Path("ringtrue.toml").read_text())["ci"]["setup"]
    assert shlex.split(setup)[:3] == ["ringtrue", "ingest", "my notes"]
    assert ringtrue(*shlex.split(setup)[1:]).code == 0


def test_nothing_that_exists_is_replaced(ringtrue, folder) -> None:
    Path("ringtrue.toml").write_text("[score]\nlevel = 2\n")
    Path(".gitignore").write_text("mine\n")
    Path(".gitlab-ci.yml").write_text("stages: [test]\n")
    outcome = ringtrue("init", "--yes", "--ci", "both")
    assert outcome.code == 0, outcome.err
    for file in ("ringtrue.toml", ".gitignore", ".gitlab-ci.yml"):
        assert f"left  {file} as it is" in outcome.out
    assert Path("ringtrue.toml").read_text() == "[score]\nlevel = 2\n"
    assert "include: [{local: .gitlab/ringtrue.yml}]" in outcome.err
    assert ".ringtrue/" in outcome.err
    again = ringtrue("init", "--yes", "--ci", "both", "--overwrite", "--json").json
    assert again["left"] == []
    assert "[eval]" in Path("ringtrue.toml").read_text()


def test_a_second_start_in_the_same_folder_leaves_everything(ringtrue, folder) -> None:
    first = ringtrue("init", "--yes", "--json").json
    second = ringtrue("init", "--yes", "--json").json
    assert set(second["left"]) >= {"ringtrue.toml", "golden/start.yaml", ".gitignore"}
    assert second["written"] == []
    assert set(first["written"]) >= set(second["left"])


def test_answers_lead_to_the_same_files_as_options(ringtrue, folder) -> None:
    said = b"opensearch\nhttps://search.example.com:9200\nshop\nnone\n"
    asked = ringtrue("init", "--dir", "asked", stdin=said)
    assert asked.code == 0, asked.err
    options = ["--search", "opensearch", "--where", "https://search.example.com:9200", "--name", "shop", "--ci", "none"]
    given = ringtrue("init", "--yes", "--dir", "given", *options)
    assert given.code == 0
    for file in ("ringtrue.toml", "golden/shop.yaml"):
        assert Path("asked", file).read_text() == Path("given", file).read_text()
    assert not Path("asked/.github").exists()
    assert "examples; replace them" in asked.err
    assert tomllib.loads(Path("asked/ringtrue.toml").read_text())["connections"]["search"]["kind"] == "opensearch"


def test_an_endpoint_is_asked_the_query_that_the_user_names(ringtrue, folder, address) -> None:
    outcome = ringtrue("init", stdin=f"http\n{address}/search\nthe sauna\n\nshop\nnone\n".encode())
    assert outcome.code == 0, outcome.err
    assert "a search with these settings works (3 documents for 'the sauna')" in outcome.err
    assert printed(outcome.out)[-1] == "ringtrue baseline update"


def test_an_unknown_answer_is_asked_again_with_all_choices(ringtrue, folder) -> None:
    outcome = ringtrue("init", stdin=b"solr\nsqlite\nshop.sqlite\na/b\nshop\njenkins\nnone\n")
    assert outcome.code == 0, outcome.err
    for text in (
        "choose one of documents, python, http",
        "llamaindex",
        "cannot name a golden set",
        "github, gitlab, both, none",
    ):
        assert text in outcome.err
    assert 'kind = "sqlite"' in Path("ringtrue.toml").read_text()
    assert Path("golden/shop.yaml").exists()


def test_questions_that_nobody_answers_end_with_a_cure(ringtrue, folder) -> None:
    outcome = ringtrue("init", stdin=b"")
    assert outcome.code == 2
    assert "--yes" in outcome.err
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--search", "solr"], "there is no start for 'solr'"),
        (["--ci", "jenkins"], "there are no CI files for 'jenkins'"),
        (["--name", "a/b"], "cannot name a golden set"),
        (["--where", "../elsewhere"], "outside this folder"),
        (["--search", "http", "--where", "http://localhost:x/search"], "the address cannot be read"),
        (["--search", "http", "--where", "http://ada:pw@localhost/search"], "set user_env and password_env"),
    ],
)
def test_mistakes_are_told_before_anything_is_written(ringtrue, folder, arguments, says) -> None:
    outcome = ringtrue("init", "--yes", *arguments)
    assert outcome.code == 2
    assert says in outcome.err
    assert list(folder.iterdir()) == []


def test_json_is_one_object_and_asks_nothing(ringtrue, folder) -> None:
    record = ringtrue("init", "--json", "--dir", "there").json
    assert set(record) == {"folder", "written", "left", "completed", "paste", "indexed", "next"}
    assert record["indexed"] == len([name for name in record["written"] if name.startswith("documents/")]) > 10
    assert Path("there/ringtrue.toml").exists()


@pytest.mark.parametrize("words", [["init"], ["ci"], ["comment"]], ids=" ".join)
def test_help_has_an_example(ringtrue, words) -> None:
    outcome = ringtrue(*words, "--help")
    assert outcome.code == 0
    assert f"Example: ringtrue {words[0]}" in outcome.out


def test_pre_commit_runs_the_commands_that_it_declares(ringtrue, folder, root) -> None:
    """pre-commit calls ``entry`` with the changed files after it, or without any."""
    hooks = {hook["id"]: hook for hook in yaml.safe_load((root / ".pre-commit-hooks.yaml").read_text())}
    assert set(hooks) == {"ringtrue-golden-validate", "ringtrue-gate"}
    ringtrue("init", "--yes", "--ci", "none")
    for command in (["eval", "--no-report"], ["baseline", "update"]):
        assert ringtrue(*command).code == 0

    validate, gate = hooks["ringtrue-golden-validate"], hooks["ringtrue-gate"]
    import re

    assert re.search(validate["files"], "golden/start.yaml")
    assert re.search(validate["files"], "search/golden/set.json")
    assert not re.search(validate["files"], "golden/corpus.jsonl")
    assert not re.search(validate["files"], "documents/printing.md")
    program = shlex.split(validate["entry"])
    assert program[0] == "ringtrue"
    assert ringtrue(*program[1:], "golden/start.yaml").code == 0
    sound = Path("golden/start.yaml").read_text()
    Path("golden/start.yaml").write_text(sound.replace("grade: 3", "grade: 9", 1))
    assert ringtrue(*program[1:], "golden/start.yaml").code == 2

    assert gate["stages"] == ["pre-push"]
    assert gate["pass_filenames"] is False
    run = next(Path(".ringtrue/runs").iterdir())
    program = shlex.split(gate["entry"])
    Path("golden/start.yaml").write_text(sound.replace("grade: 3", "grade: 2", 1))
    assert ringtrue(*program[1:], "--run", run).code == 3, "a run on another golden set is not proof"
    Path("golden/start.yaml").write_text(sound)
    assert ringtrue(*program[1:], "--run", run).code == 0
    assert ringtrue(*program[1:], "--run", run, "--floor", "R@5=1.0").code == 1


def test_help_of_the_new_commands_imports_nothing_heavy() -> None:
    heavy = {"numpy", "yaml", "duckdb", "scipy", "jinja2", "ringtrue.golden", "urllib.request"}
    code = f"import ringtrue.cli, sys; print(*sorted({heavy} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == ""
