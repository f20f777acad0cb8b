"""Which files a shell command shows: agents read memories with ``cat`` or ``sed -n`` as often as with a tool for reading."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

READERS = {"cat", "head", "tail", "sed", "less", "more", "nl", "bat", "batcat", "rg", "grep", "egrep", "jq"}
"""Programs that print what is in a file."""
BEFORE = {"sudo", "env", "command", "time", "nice", "then", "do", "else", "!"}
"""Words that may stand before a program."""
SHELLS = {"sh", "bash", "zsh", "dash"}
ENDINGS = (".json", ".md")
LONGEST_COMMAND = 20_000
_NOT_SHOWN = {
    "sed": {"-i", "--in-place"},
    "rg": {"--files", "-l", "--files-with-matches", "-c", "--count", "-q", "--quiet"},
    "grep": {"-l", "--files-with-matches", "-L", "-c", "--count", "-q", "--quiet"},
}
"""Options with which a program of the readers shows nothing of a file."""
_BETWEEN = frozenset(";&|()")


def files_shown(command: str, cwd: str) -> list[str]:
    """Return the absolute paths of the JSON and Markdown files that a command prints, each once, in their order.

    A file behind ``>`` is written, not read. Patterns such as ``*.json`` are not followed, and neither is a here-document.

    >>> files_shown("cd notes && cat a.json 'b c.md' > d.json; head -n 3 /x.json", "/p")
    ['/p/notes/a.json', '/p/notes/b c.md', '/x.json']
    """
    if not any(ending in command for ending in ENDINGS):
        return []
    found: dict[str, None] = {}
    for words in _commands(command[:LONGEST_COMMAND]):
        while len(words) > 1 and (words[0] in BEFORE or "=" in words[0]):
            del words[0]
        name = os.path.basename(words[0])
        if name == "cd" and len(words) > 1:
            there = os.path.normpath(os.path.join(cwd, os.path.expanduser(words[1])))
            # Claude Code tells of the folder after the command: it may be there already.
            cwd = there if os.path.isdir(there) or not cwd.endswith(os.path.normpath(words[1])) else cwd
        elif name in SHELLS and len(words) > 2 and words[1] in ("-c", "-lc", "-ic"):
            found.update(dict.fromkeys(files_shown(words[2], cwd)))
        elif name in READERS and not _NOT_SHOWN.get(name, set()) & set(words):
            for word in words[1:]:
                if word.endswith(ENDINGS) and not word.startswith("-"):
                    found[os.path.normpath(os.path.join(cwd, os.path.expanduser(word)))] = None
    return list(found)


def _commands(text: str) -> Iterator[list[str]]:
    """Yield the words of each command in a line of them, without what is redirected."""
    import shlex

    text = text.replace("\\\n", " ")
    if "<<" in text:  # the lines that follow are a text, not commands
        start = text.index("<<")
        text = text[: text.find("\n", start)] if "\n" in text[start:] else text
    lexer = shlex.shlex(text.replace("\n", " ; "), posix=True, punctuation_chars=True)
    lexer.whitespace_split, lexer.commenters = True, ""
    words: list[str] = []
    written = False
    try:
        for token in lexer:
            if set(token) <= _BETWEEN:
                if words:
                    yield words
                words, written = [], False
            elif set(token) <= {">", "<", "&", "|"}:
                written = ">" in token
            elif written:
                written = False
            else:
                words.append(token)
    except ValueError:  # a quotation without an end
        pass
    if words:
        yield words
