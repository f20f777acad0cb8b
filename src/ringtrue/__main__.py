"""``python -m ringtrue`` is the same program as ``ringtrue``."""

from ringtrue.cli import script

if __name__ == "__main__":
    script()
