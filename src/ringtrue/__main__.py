"""``python -m ringtrue`` is the same program as ``ringtrue``."""

from ringtrue.cli import main

if __name__ == "__main__":
    main()
