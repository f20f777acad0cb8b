"""The agent memory: memory files and what hosts send come in; answers, figures and an installed plugin go out.

What a hook needs lies in ``ringtrue.memory.hook`` (standard library only); here is what may take its time: the hybrid search,
commands, importers, the doctor, the MCP server, installing, and the way of signals into the store. May not print or exit.
"""
