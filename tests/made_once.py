"""Folders that cost much to fill, filled once in a run of the tests by whichever process needs them first."""

from __future__ import annotations

import fcntl
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest


def made_once(factory: pytest.TempPathFactory, name: str, fill: Callable[[Path], None]) -> Path:
    """Return a folder that ``fill`` has filled; processes that run tests side by side share it, so nobody may write there."""
    here = factory.getbasetemp()
    # Under xdist every process has a folder of its own below the one they share.
    folder = (here.parent if here.name.startswith("popen-") else here) / name
    folder.mkdir(exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "done").exists():
            fill(folder)
            (folder / "done").touch()
    return folder


@pytest.fixture(scope="session")
def hotel_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What ``hybrid`` over the hotel set leaves in a cache, but for its evaluation: the model, the documents, their indexes.

    To encode the documents takes half a minute of one core. Copy it with ``cache_from``.
    """
    return made_once(tmp_path_factory, "hotel-cache", _index_hotel)


def _index_hotel(folder: Path) -> None:
    from ringtrue.golden import load
    from ringtrue.retrieve import build
    from ringtrue.run import corpus_of

    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("RINGTRUE_CACHE", str(folder))
        build("hybrid", corpus_of(load("hotel"), folder / "corpora")).search("pool", k=1)


def cache_from(made: Path, cache: Path) -> Path:
    """Copy the models and indexes of one cache into another; return that."""
    # A model that an earlier test of the process had loaded already is in no cache; whoever needs it makes it.
    for file in (made / "models").glob("*"):
        (cache / "models").mkdir(parents=True, exist_ok=True)
        # Models are only ever read, and large.
        (cache / "models" / file.name).hardlink_to(file)
    shutil.copytree(made / "corpora", cache / "corpora", dirs_exist_ok=True)
    return cache
