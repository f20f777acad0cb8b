"""What stays of a user who was deleted: a mark in the audit trail, so that nothing of the user comes back from elsewhere."""

from __future__ import annotations

import hashlib

USER_DELETED = "user.deleted"
"""What the audit trail calls the deletion of a user, whose mark is the entry's subject."""


def user_mark(user_id: str, project: str) -> str:
    """Return what stands for a deleted user, whose id must not be kept: a hash, another one in every project."""
    return hashlib.sha256(f"{project}\0{user_id}".encode("utf-8", "surrogatepass")).hexdigest()
