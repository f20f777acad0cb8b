"""Search through a tool of an MCP server.

In ringtrue.toml the same connection is::

    [connections.notes]
    kind = "mcp"
    command = ["python", "notes_server.py"]     # or: url = "https://example.com/mcp", token_env = "NOTES_TOKEN"
    tool = "search_notes"
    arguments = {query = "{text}", limit = "{k}"}
    id = "note"

and then::

    ringtrue search "arriving after midnight" --retriever "connect('notes')"

Run without arguments, this file asks; run with ``serve``, it is the server that is asked.
"""

import sys
from typing import Any

NOTES = {
    "late-arrival": "After midnight the night porter opens the door for guests who are arriving late.",
    "pool": "The pool is open from seven to ten, for children until eight.",
    "parking": "The yard gate closes at midnight.",
    "breakfast": "Breakfast is served from seven.",
}


def serve() -> None:
    from mcp.server.mcpserver import MCPServer

    server = MCPServer("notes", log_level="ERROR")

    @server.tool()
    def search_notes(query: str, limit: int = 10) -> list[dict[str, Any]]:
        """Find notes by their words."""
        words = set(query.lower().split())
        scores = {note: len(words & set(text.lower().strip(".").split())) for note, text in NOTES.items()}
        best = sorted((note for note in scores if scores[note]), key=lambda note: -scores[note])
        return [{"note": note, "score": scores[note]} for note in best[:limit]]

    server.run()


def main() -> None:
    from ringtrue.retrieve.connectors import connect

    notes = connect(
        {"kind": "mcp", "command": [sys.executable, __file__, "serve"], "tool": "search_notes", "id": "note"}, name="notes"
    )
    for hit in notes.search("arriving after midnight", k=3):
        print(f"{hit.score:.0f}  {hit.doc_id}")


if __name__ == "__main__":
    serve() if sys.argv[1:] == ["serve"] else main()
