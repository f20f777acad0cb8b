"""Where the gate runs: evaluations and the service under test, files for GitHub and GitLab, the comment (B-4, B-5).

Reports come in as texts; comments, summaries and outputs go out, and the files of a start. May not: decide, print, read the
environment. Requests go out with the standard library alone, so that a job in CI needs no extra.
"""

from ringtrue.ci.addresses import AskedServers, check_addresses
from ringtrue.ci.files import (
    ACCESS,
    FORGES,
    PLACES,
    SAMPLE,
    Start,
    Written,
    complete,
    connection_in,
    extras_of,
    ingest_command,
    starter,
    try_command,
    write_new,
)
from ringtrue.ci.github import add_outputs, add_summary, post_comment, pull_request_number
from ringtrue.ci.gitlab import post_note
from ringtrue.ci.job import Side, checkout, evaluate_in, repository_root
from ringtrue.ci.service import ServiceCommands
from ringtrue.ci.sticky import MARKER, Posted, marker_in
from ringtrue.ci.used import check_code, check_servers

__all__ = [
    "ACCESS",
    "FORGES",
    "MARKER",
    "PLACES",
    "SAMPLE",
    "AskedServers",
    "Posted",
    "ServiceCommands",
    "Side",
    "Start",
    "Written",
    "add_outputs",
    "add_summary",
    "check_addresses",
    "check_code",
    "check_servers",
    "checkout",
    "complete",
    "connection_in",
    "evaluate_in",
    "extras_of",
    "ingest_command",
    "marker_in",
    "post_comment",
    "post_note",
    "pull_request_number",
    "repository_root",
    "starter",
    "try_command",
    "write_new",
]
