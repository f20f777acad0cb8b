"""Where the gate runs: files for GitHub and GitLab, the one comment on a pull request, the step summary (B-4).

Reports come in as texts; comments, summaries and outputs go out, and the files of a start. May not: decide, print, read the
environment. Requests go out with the standard library alone, so that a job in CI needs no extra.
"""

from ringtrue.ci.files import FORGES, PLACES, SAMPLE, Start, Written, ingest_command, starter, try_command, write_new
from ringtrue.ci.github import add_outputs, add_summary, post_comment, pull_request_number
from ringtrue.ci.gitlab import post_note
from ringtrue.ci.job import Side, checkout, evaluate_in
from ringtrue.ci.sticky import MARKER, Posted, marker_in

__all__ = [
    "FORGES",
    "MARKER",
    "PLACES",
    "SAMPLE",
    "Posted",
    "Side",
    "Start",
    "Written",
    "add_outputs",
    "add_summary",
    "checkout",
    "evaluate_in",
    "ingest_command",
    "marker_in",
    "post_comment",
    "post_note",
    "pull_request_number",
    "starter",
    "try_command",
    "write_new",
]
