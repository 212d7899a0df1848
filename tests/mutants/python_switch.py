"""The switch of changes in Python sources: that of switched_tree.py in Python."""

import mmap
import os

MOST = 1 << 14  # numbers

_CHOSEN = int(os.environ.get("MUTANT_NUMBER", "-1"))


def _mapped() -> mmap.mmap | None:
    path = os.environ.get("MUTANTS_REACHED")
    if path is None:
        return None
    file = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        os.ftruncate(file, MOST)
        return mmap.mmap(file, MOST)
    finally:
        os.close(file)


_reached = _mapped()


def xpurt_mutant(number: int) -> bool:
    """Whether this change is on. It is marked as reached."""
    if _reached is not None:
        _reached[number] = 1
    return number == _CHOSEN
