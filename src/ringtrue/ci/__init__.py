"""Where the gate runs: evaluations and the service under test, files for GitHub and GitLab, the comment.

Reports come in as texts; comments, summaries and outputs go out, and the files of a start. May not: decide, print, read the
environment.
"""

from ringtrue.ci.files import (
    ACCESS as ACCESS,
    FORGES as FORGES,
    PLACES as PLACES,
    SAMPLE as SAMPLE,
    Start as Start,
    Written as Written,
    again_command as again_command,
    complete as complete,
    connection_in as connection_in,
    extras_of as extras_of,
    ingest_command as ingest_command,
    starter as starter,
    try_command as try_command,
    write_new as write_new,
)
from ringtrue.ci.forges import (
    MARKER as MARKER,
    Posted as Posted,
    add_outputs as add_outputs,
    add_summary as add_summary,
    marker_in as marker_in,
    post_comment as post_comment,
    post_note as post_note,
    pull_request_number as pull_request_number,
)
from ringtrue.ci.job import (
    EvaluatedSide as EvaluatedSide,
    checkout as checkout,
    evaluate_in as evaluate_in,
    place_in_repository as place_in_repository,
    repository_root as repository_root,
)
from ringtrue.ci.service import (
    AskedServers as AskedServers,
    ServiceCommands as ServiceCommands,
    check_addresses as check_addresses,
)
from ringtrue.ci.used import check_code as check_code, check_servers as check_servers
