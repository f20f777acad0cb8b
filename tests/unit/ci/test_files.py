"""The files that people copy or that ``ringtrue init`` writes are what GitHub, GitLab and pre-commit can read."""

from __future__ import annotations

import re
import subprocess
import tomllib
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
import yaml

from ringtrue.ci import FORGES, PLACES, Start, extras_of, starter, write_new
from ringtrue.errors import InputError
from ringtrue.records import Document

DOCUMENTS = [Document(f"notes/{name}.md", f"text about {name}", name.title()) for name in ("pool", "spa", "bar")]


INSTALL = (files("ringtrue.ci") / "templates" / "install.sh").read_text()


def loaded(text: str) -> Any:
    found = yaml.safe_load(text)
    assert isinstance(found, dict)
    return found


def check_shell(script: str) -> None:
    # An expression of GitHub is filled in before bash sees it.
    done = subprocess.run(["bash", "-n"], input=re.sub(r"\$\{\{.*?\}\}", "x", script), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.fixture
def action(root: Path) -> dict[str, Any]:
    return loaded((root / "action.yml").read_text())


def test_the_action_has_what_github_asks_for(action) -> None:
    assert {"name", "description", "inputs", "outputs", "runs"} <= set(action)
    assert action["runs"]["using"] == "composite"
    for name, value in {**action["inputs"], **action["outputs"]}.items():
        assert value["description"], name
    for step in action["runs"]["steps"]:
        assert ("run" in step) != ("uses" in step)
        if "run" in step:
            assert step["shell"] == "bash"
            check_shell(step["run"])
            assert "${{" not in step["run"], "a text of the pull request would become part of the script"
        else:
            assert re.fullmatch(r"[\w-]+/[\w/-]+@v\d+", step["uses"])


def test_every_input_and_step_that_the_action_names_exists(action, root) -> None:
    text = (root / "action.yml").read_text()
    used = set(re.findall(r"inputs\.([\w-]+)", text))
    assert used == set(action["inputs"])
    assert set(re.findall(r"steps\.(\w+)\.", text)) <= {step.get("id") for step in action["runs"]["steps"]}


def test_every_variable_of_the_action_is_an_option_of_ringtrue_ci(action, root) -> None:
    import typer

    from ringtrue.cli import app

    known = {f"RINGTRUE_CI_{option.name.upper()}" for option in typer.main.get_command(app).commands["ci"].params}
    gate = next(step for step in action["runs"]["steps"] if step.get("id") == "gate")
    variables = {name for name in gate["env"] if name.startswith("RINGTRUE_")}
    assert variables <= known
    assert {"RINGTRUE_CI_GOLDEN", "RINGTRUE_CI_BASE_REF", "RINGTRUE_CI_RUN"} <= variables
    assert set(re.findall(r"RINGTRUE_CI_[A-Z_]+", (root / "templates/gitlab-ringtrue.yml").read_text())) <= known | {
        "RINGTRUE_CI_"
    }


def test_the_steps_after_a_failed_gate_still_run(action) -> None:
    steps = action["runs"]["steps"]
    gate = next(index for index, step in enumerate(steps) if step.get("id") == "gate")
    assert "if" not in steps[gate]
    assert "continue-on-error" not in steps[gate]
    for step in steps[gate + 1 :]:
        assert step["if"].startswith("always()")


def test_only_the_step_that_comments_gets_the_token(action) -> None:
    holders = [step for step in action["runs"]["steps"] if "inputs.token" in str(step)]
    assert [step["id"] for step in holders] == ["gate"]


@pytest.mark.parametrize("forges", ["github", "gitlab", "both"])
def test_written_pipelines_are_valid_and_run_the_job(forges) -> None:
    files = starter(Start(forges=forges), source="==0.1.0")
    if forges in ("github", "both"):
        flow = loaded(files[".github/workflows/ringtrue.yml"])
        events = flow[True]  # YAML reads the key `on` as true
        assert "documents/**" in events["pull_request"]["paths"]
        assert flow["permissions"] == {"contents": "read", "pull-requests": "write"}
        steps = flow["jobs"]["ringtrue"]["steps"]
        scripts = [step["run"] for step in steps if "run" in step]
        assert scripts == [INSTALL, "ringtrue ci"]
        assert flow["jobs"]["ringtrue"]["env"]["RINGTRUE_SOURCE"] == "${{ vars.RINGTRUE_SOURCE || '==0.1.0' }}"
        assert steps[-1]["if"] == "always()"
        assert flow["jobs"]["ringtrue"]["timeout-minutes"] == 30
        assert flow["concurrency"] == {
            "group": "${{ github.workflow }}-${{ github.event.pull_request.number || github.run_id }}",
            "cancel-in-progress": True,
        }
        for script in scripts:
            check_shell(script)
    if forges in ("gitlab", "both"):
        job = loaded(files[".gitlab/ringtrue.yml"])["ringtrue"]
        assert job["script"] == [INSTALL, "ringtrue ci"]
        assert job["variables"]["RINGTRUE_SOURCE"] == "==0.1.0"
        assert job["artifacts"]["reports"]["junit"] == "ringtrue-out/junit.xml"
        assert job["artifacts"]["when"] == "always"
        assert "documents/**" in job["rules"][0]["changes"]
        assert loaded(files[".gitlab-ci.yml"])["include"] == [{"local": ".gitlab/ringtrue.yml"}]
    assert not any("<<" in text for text in files.values())


def test_the_gitlab_template_is_valid(root) -> None:
    job = loaded((root / "templates/gitlab-ringtrue.yml").read_text())["ringtrue"]
    for script in job["script"]:
        check_shell(script)
    assert job["script"] == [INSTALL, "python -P -m ringtrue ci"]
    assert job["artifacts"]["reports"]["junit"].startswith("ringtrue-out/")


def test_none_writes_no_pipeline() -> None:
    assert not [name for name in starter(Start(forges="none")) if name.startswith((".github", ".gitlab"))]


@pytest.mark.parametrize("search", [kind for kind in PLACES if kind not in ("documents", "sqlite")])
def test_a_pipeline_runs_on_every_change_if_any_file_may_belong_to_the_search(search) -> None:
    files = starter(Start(search=search, forges="both"))
    assert loaded(files[".github/workflows/ringtrue.yml"])[True]["pull_request"] is None
    assert "changes" not in loaded(files[".gitlab/ringtrue.yml"])["ringtrue"]["rules"][0]


@pytest.mark.parametrize(
    ("source", "extras", "installed"),
    [
        ("git+https://git.example.com/r.git@4f2a", "http", ["ringtrue @ S", "ringtrue[http]"]),
        ("https://git.example.com/r.git@v1", "http", ["ringtrue @ git+S", "ringtrue[http]"]),
        ("https://git.example.com/group/ringtrue", "", ["ringtrue @ git+S"]),
        ("ssh://git@git.example.com/group/ringtrue.git", "", ["ringtrue @ git+S"]),
        ("git@git.example.com:group/r.git@v1", "", ["ringtrue @ git+ssh://git@git.example.com/group/r.git@v1"]),
        ("0.1.0", "", ["ringtrue==S"]),
        ("3rd/ringtrue", "", ["S"]),
        ("https://files.example.com/ringtrue-0.1.0-py3-none-any.whl", "", ["ringtrue @ S"]),
        ("./vendor/ringtrue", "http,search", ["S", "ringtrue[http,search]"]),
        ("==0.1.0", "http", ["ringtrueS", "ringtrue[http]"]),
    ],
)
@pytest.mark.parametrize("shell", ["bash", "sh"])
def test_a_pipeline_installs_the_source_once_and_then_what_the_search_needs(tmp_path, shell, source, extras, installed) -> None:
    """A stand-in for Python writes down what pip is asked for."""
    python = tmp_path / "python"
    python.write_text(
        "#!/bin/sh\n"
        f'if [ "$2" = pip ]; then echo "$5" >> {tmp_path}/asked; exit; fi\n'
        f'test "$*" = "-P -m ringtrue ci --extras" && echo "{extras}"\n'
    )
    python.chmod(0o755)
    environment = {"PATH": f"{tmp_path}:/usr/bin:/bin", "RINGTRUE_SOURCE": source}
    done = subprocess.run([shell, "-e", "-c", INSTALL], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "asked").read_text().splitlines() == [line.replace("S", source) for line in installed]


def test_a_pipeline_without_a_source_fails_in_words() -> None:
    environment = {"PATH": "/usr/bin:/bin", "RINGTRUE_SOURCE": ""}
    done = subprocess.run(["sh", "-e", "-c", INSTALL], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr == "RINGTRUE_SOURCE is empty: set it to a Git URL, a wheel or a folder that holds Ringtrue\n"
    assert loaded(starter(Start(forges="gitlab"))[".gitlab/ringtrue.yml"])["ringtrue"]["variables"]["RINGTRUE_SOURCE"] == ""


def test_a_bare_source_is_a_folder_or_wheel_here_and_no_package_of_the_index(tmp_path) -> None:
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nif [ "$2" = pip ]; then echo "$5" >> {tmp_path}/asked; fi\n')
    python.chmod(0o755)
    (tmp_path / "vendor").mkdir()
    for source, code in (("vendor", 0), ("vendors", 2)):
        environment = {"PATH": f"{tmp_path}:/usr/bin:/bin", "RINGTRUE_SOURCE": source}
        done = subprocess.run(
            ["sh", "-e", "-c", INSTALL], env=environment, cwd=tmp_path, capture_output=True, text=True, check=False
        )
        assert done.returncode == code
        assert ("RINGTRUE_SOURCE=vendors is not a folder or wheel here" in done.stderr) is bool(code)
    assert (tmp_path / "asked").read_text() == "./vendor\n"


def test_the_extras_include_those_of_the_set_up(ringtrue, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "docs" / "more").mkdir(parents=True)
    (tmp_path / "docs" / "more" / "one.pdf").touch()
    setup = "pip install -r requirements.txt\nringtrue ingest docs --retriever hybrid && pip install -r more.txt"
    (tmp_path / "ringtrue.toml").write_text(f'[eval]\nretriever = "bm25"\n[ci]\nsetup = {setup!r}\n'.replace("'", '"'))
    assert ringtrue("ci", "--extras").out.strip() == "dense,pdf,search"
    assert (
        ringtrue("ci", "--extras", "--setup", "ringtrue ingest other", "--retriever", "dense(hnsw=16)").out.strip()
        == "dense,faiss"
    )


@pytest.mark.parametrize(
    ("retriever", "extras"),
    [
        ("bm25", ["search"]),
        ("hybrid", ["dense", "search"]),
        ("connect('shop')", ["http"]),
        ("rrf(connect('shop'), connect('rows')) >> rerank(connection='judge')", ["dense", "http", "postgres"]),
        ("connect('program')", []),
        ("bm25 >> rerank('cross-encoder')", ["dense", "search"]),
        ("connect('forgotten')", []),
        ("dense(model='BAAI/bge-small-en-v1.5')", ["dense", "hub"]),
        ("dense(model='sentence-transformers/all-MiniLM-L6-v2')", ["dense"]),
    ],
)
def test_the_extras_are_those_of_the_search(retriever, extras) -> None:
    kinds = {"shop": "http", "rows": "pgvector", "judge": "llm", "program": "command"}
    assert extras_of([retriever], {name: {"kind": kind} for name, kind in kinds.items()}) == extras


def test_every_extra_and_every_kind_of_connection_is_known(root) -> None:
    from ringtrue.ci.files import EXTRAS, SYSTEMS
    from ringtrue.retrieve import ALL
    from ringtrue.retrieve.connectors import KINDS

    declared = set(tomllib.loads((root / "pyproject.toml").read_text())["project"]["optional-dependencies"])
    assert {extra for text in (*EXTRAS.values(), *SYSTEMS.values()) for extra in text.split(",")} <= declared | {""}
    assert set(KINDS) == {*SYSTEMS, "run"}
    assert set(EXTRAS) <= set(ALL)


@pytest.mark.parametrize("search", [kind for kind in PLACES if kind not in ("documents", "python")])
def test_settings_of_every_system_can_be_opened(search, tmp_path, monkeypatch) -> None:
    """The keys are ones that the connector knows; a server is not asked."""
    from ringtrue.retrieve.connectors import kind

    text = starter(Start(search=search, forges="none"))["ringtrue.toml"]
    settings = tomllib.loads(text)
    assert settings["eval"]["retriever"] == "connect('search')"
    connection = settings["connections"]["search"]
    found = kind(connection.pop("kind"))
    assert set(connection) <= set(found.__dataclass_fields__)
    assert found.__name__.lower().startswith(search[:4])


def test_a_start_from_documents_judges_exactly_those(tmp_path) -> None:
    from ringtrue.golden import load

    text = starter(Start(where="notes", name="shop"), DOCUMENTS)["golden/shop.yaml"]
    (tmp_path / "shop.yaml").write_text(text)
    golden = load(tmp_path / "shop.yaml")
    assert golden.id == "shop"
    assert {judgment.doc_id for judgment in golden.judgments} == {document.doc_id for document in DOCUMENTS}
    assert {query.text for query in golden.queries} == {"Pool", "Spa", "Bar"}
    assert golden.provisional
    assert "PROVISIONAL" in text.splitlines()[1]


def test_documents_without_a_title_are_asked_by_the_name_of_their_file() -> None:
    text = starter(Start(where="notes"), [Document("notes/late-arrival_desk.txt", "…")])["golden/start.yaml"]
    assert "query_text: late arrival desk" in text


def test_of_many_documents_some_are_taken_from_everywhere() -> None:
    many = [Document(f"d/{n}.md", "…", f"Title {n}") for n in range(1000)]
    queries = yaml.safe_load(starter(Start(where="d"), many)["golden/start.yaml"])["queries"]
    assert len(queries) == 40
    assert queries[-1]["query_text"] == "Title 975"


def test_samples_follow_the_folder_and_the_name_that_were_chosen(tmp_path) -> None:
    files = starter(Start(where="help", name="town"))
    golden = yaml.safe_load(files["golden/town.yaml"])
    assert golden["id"] == "town"
    judged = {judgment["doc_id"] for query in golden["queries"] for judgment in query["relevant_docs"]}
    assert judged == {name for name in files if name.startswith("help/")}
    settings = tomllib.loads(files["ringtrue.toml"])
    assert settings["ci"]["setup"].startswith("ringtrue ingest help ")


def test_what_a_golden_set_says_about_ids_fits_the_search(tmp_path) -> None:
    """A Python function has no connection to ask."""
    own = starter(Start(search="python", where="shop/search.py:find"), function="here")["golden/start.yaml"]
    assert "connect(" not in own
    assert "import shop.search as m; print(m.find(" in own
    assert "connect('search')" in starter(Start(search="http"))["golden/start.yaml"]


@pytest.mark.parametrize(
    ("place", "module"),
    [("my_search.py:find", "my_search.py"), ("a/b.py:find", "a/b.py"), ("shop.search:find", "shop/search.py")],
)
def test_a_function_that_is_missing_is_written_where_it_is_named(place, module) -> None:
    files = starter(Start(search="python", where=place), samples="tried")
    compile(files[module], module, "exec")
    assert "TODO" in files[module]
    assert 'Path("tried")' in files[module]
    settings = tomllib.loads(files["ringtrue.toml"])["eval"]
    assert (settings["python"], settings["watch"]) == (place, [module, "tried/*"])
    judged = {j["doc_id"] for q in yaml.safe_load(files["golden/start.yaml"])["queries"] for j in q["relevant_docs"]}
    assert judged == {name for name in files if name.startswith("tried/")}
    there = starter(Start(search="python", where=place), function="here")
    assert module not in there
    assert tomllib.loads(there["ringtrue.toml"])["eval"]["watch"] == [module]
    assert (
        "watch"
        not in tomllib.loads(starter(Start(search="python", where=place), function="installed")["ringtrue.toml"])["eval"]
    )


@pytest.mark.parametrize("place", ["../out.py:find", "/tmp/out.py:find", "my_search.py:Engine.find"])
def test_a_function_that_cannot_be_written_here_is_told(place) -> None:
    with pytest.raises(InputError, match=r"is not there|not found"):
        starter(Start(search="python", where=place))


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"search": "solr"}, "choose one of documents, python, http, opensearch"),
        ({"search": "python", "where": "my_search.py"}, "my_search.py:find"),
        ({"search": "opensearh"}, "'opensearch'"),
        ({"forges": "githbu"}, "'github'"),
        ({"name": "../up"}, "letters, digits"),
        ({"where": 'a"b'}, "quotes"),
        ({"where": "/tmp/documents"}, "outside this folder"),
        ({"where": "../documents"}, "outside this folder"),
    ],
)
def test_a_wrong_answer_is_told_with_its_cure(changes, says) -> None:
    with pytest.raises(InputError, match=re.escape(says)):
        Start(**changes)


def test_every_choice_of_pipelines_is_known() -> None:
    assert set(FORGES) == {"github", "gitlab", "both", "none"}


def test_nothing_that_exists_is_replaced_unless_asked(tmp_path) -> None:
    (tmp_path / "ringtrue.toml").write_text("# mine\n")
    done = write_new({"ringtrue.toml": "new", "a/b.md": "text"}, tmp_path)
    assert (done.written, done.left) == (("a/b.md",), ("ringtrue.toml",))
    assert (tmp_path / "ringtrue.toml").read_text() == "# mine\n"
    again = write_new({"ringtrue.toml": "new"}, tmp_path, overwrite=True)
    assert (again.written, again.left) == (("ringtrue.toml",), ())
    assert (tmp_path / "ringtrue.toml").read_text() == "new"


def test_a_dangling_link_counts_as_there(tmp_path) -> None:
    (tmp_path / "x").symlink_to(tmp_path / "nowhere")
    assert write_new({"x": "text"}, tmp_path).left == ("x",)
    assert not (tmp_path / "nowhere").exists()


def blocks(root: Path, kind: str) -> list[Any]:
    read = {"yaml": yaml.safe_load, "toml": tomllib.loads}[kind]
    return [read(text) for text in re.findall(rf"```{kind}\n(.*?)```", (root / "docs/ci.md").read_text(), re.DOTALL)]


def test_what_the_guide_shows_can_be_copied(root, action) -> None:
    import typer

    from ringtrue.cli import app

    flow, include, hooks = blocks(root, "yaml")
    step = flow["jobs"]["ringtrue"]["steps"][-1]
    assert set(step["with"]) <= set(action["inputs"])
    assert (root / include["include"][0]["file"]).is_file()
    known = {hook["id"] for hook in yaml.safe_load((root / ".pre-commit-hooks.yaml").read_text())}
    assert {hook["id"] for hook in hooks["repos"][0]["hooks"]} == known
    text = (root / "docs/ci.md").read_text()
    table = re.findall(r"^\| (`[^|]*`) \|", text.split("\n## GitHub\n")[1], re.MULTILINE)
    assert set(re.findall(r"`([\w-]+)`", " ".join(table))) == set(action["inputs"])
    commands = typer.main.get_command(app).commands
    from ringtrue.retrieve.connectors import connect

    for settings in blocks(root, "toml"):
        for name, connection in settings.pop("connections", {}).items():
            assert connect({key: value for key, value in connection.items() if key != "port"}, name=name).name == name
        for section, values in settings.items():
            options = {option.name for option in commands[section].params} | {"floors"}
            assert set(values) <= options, section
    for name, arguments in re.findall(r"^ringtrue (\w+)([^\n#]*)", text, re.MULTILINE):
        command = commands[name]
        first = arguments.split()[:1]
        if hasattr(command, "commands"):
            command = command.commands[first[0]]
        flags = {flag for option in command.params for flag in (*option.opts, *option.secondary_opts)}
        assert set(re.findall(r"(?<=\s)--[\w-]+", arguments)) <= flags, (name, arguments)
