"""The quick half of the agent memory: memory files come in, the few that answer a prompt go out.

Only the standard library, and of it only what starts fast: a hook is a new process for every prompt. Nothing here may import
the rest of ``ringtrue`` (imports are relative), because a plugin carries a copy of this folder and runs it with any Python
3.11. What needs vectors, a server or the platform's database lies in ``ringtrue.memory``; both use the same index and the same
decision.
"""
