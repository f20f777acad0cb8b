"""The arguments of the MCP tools: what each may be, said once (A-7)."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

LONGEST_TEXT = 20_000
Text = Annotated[str, Field(min_length=1, max_length=LONGEST_TEXT)]
Id = Annotated[str, Field(max_length=200)]
SessionId = Annotated[
    str,
    Field(max_length=200, description="The conversation; what it was given is not sent again. The server's own if left out."),
]
Places = Annotated[int | None, Field(ge=1, le=100, description="How many at most; the settings' number if left out.")]
Strategy = Annotated[
    Literal["fts5_bm25", "title_tags", "hybrid"] | None, Field(description="How to search; the settings' way if left out.")
]
Share = Annotated[float, Field(ge=0, le=1)]
Words = Annotated[list[Annotated[str, Field(min_length=1, max_length=1000)]], Field(max_length=50)]
Files = Annotated[
    list[Annotated[str, Field(max_length=4096)]],
    Field(max_length=50, description="Paths used last, the latest last; they count where related_files_boost is on."),
]
Fresh = Annotated[bool, Field(description="True when the conversation was cut short: everything is sent again.")]
Count = Annotated[int | None, Field(ge=0)]
