"""Another program uses a service of Ringtrue: it evaluates two searches, compares them, logs a search and its click.

Start a service first, in another terminal; `ringtrue serve --demo` does as well:

    ringtrue serve --golden hotel --retriever bm25

The key of a service that needs one is read from RINGTRUE_KEY, so that it stands in no list of processes.

Example: python examples/rest_client.py
Example: RINGTRUE_KEY=rt_… python examples/rest_client.py --url https://search.example.org
"""

from __future__ import annotations

import argparse
import os
import sys

import ringtrue

DOCUMENTS = {
    "pool": "The indoor pool is open from seven in the morning to ten at night.",
    "parking": "Guests park in the garage below the house for 12 euros a day.",
    "checkout": "Rooms are to be left by eleven; later on request.",
    "breakfast": "Breakfast is served from half past six to ten.",
}
QUESTIONS = {
    "opening hours of the pool": "pool",
    "price of parking in the garage": "parking",
    "leave the room later than eleven": "checkout",
    "when is breakfast": "breakfast",
    "how late may I swim at night": "pool",
    "where do I leave my car": "parking",
}
TEST_SET = {
    "id": "front-desk",
    "version": "1.0.0",
    "entities": [{"entity_id": name, "title": name, "content": text} for name, text in DOCUMENTS.items()],
    "queries": [
        {
            "query_id": f"q{number}",
            "query_text": question,
            "query_type": "front desk",
            "expected_results": {"relevant_entities": [document], "relevance_labels": {document: 3}},
        }
        for number, (question, document) in enumerate(QUESTIONS.items(), 1)
    ],
}


def run(client: ringtrue.Client) -> None:
    """Walk once through what programs do with a service."""
    german = client.evaluate(TEST_SET, retriever="bm25(language='german')", on_progress=show)
    english = client.evaluate(TEST_SET, retriever="bm25", on_progress=show)
    for found in (german, english):
        print(f"{found.retriever[:40]:40}  R@10 {_number(found.metrics['recall_at_10'])}  RR {_number(found.metrics['mrr'])}")

    compared = client.compare(german.run_id, english.run_id)
    print(f"{compared.verdict}: {compared.reason}")

    verdict = client.gate(english.run_id, baseline=None, policy={"floors": {"R@10": 0.5}, "require_baseline": False})
    print(f"gate: {verdict.verdict}")

    query_id = client.log(
        "when can I swim",
        tool_name="front-desk",
        session_id="guest-1",
        result_ids=["pool", "parking"],
        scores=[2.0, 0.5],
        total_latency_ms=12.0,
    )
    click = client.feedback.send("click", session_id="guest-1", item_id="pool", query_id=query_id, actor="person")
    print(f"search {query_id} was logged, and a click on rank {click.rank_in_results}")

    newest = next(client.runs())
    print(f"the newest run is {newest.run_id}; the service is {client.health().state}")


def show(job: ringtrue.client.Job) -> None:
    """Say how far a job is, on standard error."""
    print(f"{job.state}: {job.says} {job.done} of {job.total or '?'}", file=sys.stderr)


def _number(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.3f}"


def main() -> int:
    """Run the example; 0 where it went through, else the exit code of what went wrong."""
    about, example = str(__doc__).split("\n\nExample:", 1)
    parser = argparse.ArgumentParser(
        description=about, epilog=f"Example:{example}", formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--url", default="http://127.0.0.1:8080", help="the address of the service (default: %(default)s)")
    given = parser.parse_args()
    try:
        with ringtrue.Client(given.url, key=os.environ.get("RINGTRUE_KEY")) as client:
            run(client)
    except ringtrue.RingtrueError as problem:
        print(f"error: {problem}", file=sys.stderr)
        return problem.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
