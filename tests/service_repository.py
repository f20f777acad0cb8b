"""A repository whose search is an HTTP service of its own. As a program, it gates the unchanged service again and again.

::

    python tests/service_repository.py --times 20 --busy 4
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

SERVICE = """
import json
import os
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

TEXTS = json.load(open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "texts.json")))


def word(text):
    return text


def score(question, text):
    return len({word(part) for part in question.split()} & {word(part) for part in text.split()})


def search(question, k):
    found = sorted(TEXTS, key=lambda name: (-score(question, TEXTS[name]), name))
    return found[:k]


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        address = urlsplit(self.path)
        asked = {name: values[0] for name, values in parse_qs(address.query).items()}
        if address.path == "/healthz":
            return self.answer({"status": "ok"})
        if address.path != "/search" or "q" not in asked:
            return self.answer({"error": "no such thing"}, 404)
        found = search(asked["q"], int(asked.get("k", 10)))
        self.answer({"results": [{"id": name, "text": TEXTS[name]} for name in found]})

    def answer(self, value, status=200):
        body = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


if __name__ == "__main__":
    server = ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler)
    print("listening on", server.server_port, flush=True)
    server.serve_forever()
"""
REVERSED = SERVICE.replace("return found[:k]", "return found[::-1][:k]")
IMPROVED = SERVICE.replace("    return text\n", '    return text.removesuffix("s")\n')
TEXTS = {
    "anchor": "iron anchor that holds ships", "bakery": "bread rolls and cake", "candle": "wax that burns with one flame",
    "desert": "dry dunes with camels", "engine": "steam that drives locomotives", "forest": "pines firs and moss",
    "glacier": "blue ice creeping down valleys", "harbour": "fishing boats unload here", "island": "palms and white beaches",
    "jungle": "parrots and vines", "kettle": "copper whistling on stoves", "ladder": "wooden steps against apple trees",
    "museum": "paintings and old coins", "nursery": "young plants in pots", "orchard": "pears plums and cherries",
    "pharmacy": "pills and bandages", "quarry": "granite blocks", "railway": "tracks and signals", "stable": "horses and hay",
    "theatre": "actors on stages",
}  # fmt: skip
QUESTIONS = {
    "anchor": "iron ships", "bakery": "bread", "candle": "wax flame", "desert": "camel", "engine": "steam",
    "forest": "pines", "glacier": "ice", "harbour": "fishing", "island": "palm", "jungle": "parrot", "kettle": "copper",
    "ladder": "wooden", "museum": "painting", "nursery": "plant", "orchard": "cherries", "pharmacy": "pills",
    "quarry": "granite", "railway": "signal", "stable": "horse", "theatre": "actor",
}  # fmt: skip
"""Some ask in the singular for what a text has in the plural: the first service ranks these by name alone."""
CONNECTION = """
[connections.search]
kind = "http"
url = "http://127.0.0.1:{port}/search"
params = {q = "{text}", k = "{k}"}
hits = "results"
score = ""
"""
SETTINGS = """
[eval]
golden = "golden.yaml"
retriever = "connect('search')"
"""
GATE = """
[gate]
latency_increase = inf
[gate.floors]
"R@5" = 0.0
"""
"""Only the comparison of both sides decides: neither floors nor how fast a busy machine answers."""
SERVE = f"""
[ci]
serve = "exec {sys.executable} service.py {{port}}"
ready = "http://127.0.0.1:{{port}}/healthz"
"""


@dataclass(frozen=True)
class ServiceRepository:
    """A git repository with a search service, its golden set and its settings."""

    folder: Path
    environment: Mapping[str, str]

    @classmethod
    def create(
        cls, folder: Path, service: str = SERVICE, settings: str = SETTINGS + GATE + SERVE + CONNECTION
    ) -> ServiceRepository:
        """Return a repository with one commit, on the branch ``main``."""
        ours = ("RINGTRUE_", "GITHUB_", "GITLAB_", "CI", "GIT_")
        kept = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
        found = cls(folder, {**kept, "RINGTRUE_CACHE": f"{folder}-cache", "no_proxy": "127.0.0.1,localhost"})
        folder.mkdir(parents=True)
        found.write("texts.json", json.dumps(TEXTS))
        rows = "".join(
            f"  - {{query_id: q-{name}, query_text: {text}, relevant_docs: [{{doc_id: {name}, grade: 3, source: manual}}]}}\n"
            for name, text in QUESTIONS.items()
        )
        found.write("golden.yaml", f"id: things\nversion: 1.0.0\nqueries:\n{rows}")
        found.write(".gitignore", "ringtrue-out/\n.ringtrue/\nreports/\n")
        found.write("service.py", service)
        found.write("ringtrue.toml", settings)
        found.git("init", "--quiet")
        found.commit("a search service")
        return found

    def write(self, name: str, text: str) -> None:
        (self.folder / name).write_text(text, encoding="utf-8")

    def git(self, *arguments: str) -> str:
        who = ["-c", "user.name=Test", "-c", "user.email=test@example.com", "-c", "init.defaultBranch=main"]
        found = subprocess.run(
            ["git", *who, *arguments], cwd=self.folder, env=self.environment, check=True, capture_output=True, text=True
        )
        return found.stdout.strip()

    def commit(self, message: str) -> None:
        self.git("add", "--all")
        self.git("commit", "--quiet", "--message", message)

    def ci(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run ``ringtrue ci`` as a pipeline does."""
        return self.ringtrue("ci", "--no-comment", *arguments)

    def ringtrue(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-P", "-m", "ringtrue", *arguments]
        return subprocess.run(command, cwd=self.folder, env=self.environment, capture_output=True, text=True, check=False)

    def log(self, side: str) -> str:
        return (self.folder / "ringtrue-out" / f"{side}-service.log").read_text(encoding="utf-8")


def main(arguments: Sequence[str] | None = None) -> int:
    """Repeat the unchanged case, with busy loops beside it, and print how often it passed."""
    parser = argparse.ArgumentParser(description="Gate an unchanged search service against its base, again and again.")
    parser.add_argument("--times", type=int, default=1)
    parser.add_argument("--busy", type=int, default=0, help="busy loops that run beside it")
    parser.add_argument("--latency", action="store_true", help="judge latency, too, by the default policy")
    asked = parser.parse_args(arguments)
    loops = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(asked.busy)]
    passed = 0
    try:
        with tempfile.TemporaryDirectory() as scratch:
            settings = SETTINGS + (GATE.replace("latency_increase = inf\n", "") if asked.latency else GATE) + SERVE + CONNECTION
            repository = ServiceRepository.create(Path(scratch) / "repository", settings=settings)
            for number in range(1, asked.times + 1):
                done = repository.ci("--base-ref", "main")
                passed += done.returncode == 0
                shown = "" if done.returncode == 0 else f"\n{done.stdout}{done.stderr}"
                print(f"{number}: exit code {done.returncode}{shown}", flush=True)
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()
    print(f"an unchanged search passed {passed} of {asked.times} times")
    return 0 if passed == asked.times else 1


if __name__ == "__main__":
    sys.exit(main())
