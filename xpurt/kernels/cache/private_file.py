"""Files of this user alone: a file that another user could have written is never read.

A file is written under another name and renamed, so that processes can share a folder
without a lock. A process that is killed in between leaves a file: see `unfinished`.
"""

import os
import stat
import tempfile
from pathlib import Path

_UNFINISHED = "unfinished-"
# Unfinished files of xpurt 0.1 have the names that mkstemp gives.
_ASIDE = (f"{_UNFINISHED}*", "tmp????????")


def read_private(path: Path) -> bytes:
    """The content of a file. Raises FileNotFoundError. Raises another OSError if the
    file or its folder belongs to another user, or is writable for others, or if the
    file is not a regular one."""
    # A link may be another user's: it is not followed.
    with os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW), "rb") as file:
        own = os.fstat(file.fileno())
        if not stat.S_ISREG(own.st_mode):
            raise OSError(f"{path} is no plain file")
        for status, what in ((own, path), (path.parent.stat(), path.parent)):
            if not _is_private(status):
                raise _others_may_write(what)
        return file.read()


def write_private(path: Path, content: bytes) -> None:
    """Replaces the file atomically. Creates its folder if necessary. Raises OSError."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    if not _is_private(path.parent.stat()):
        raise _others_may_write(path.parent)
    # mkstemp creates a file for this user alone.
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=_UNFINISHED)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def unfinished(folder: Path) -> list[Path]:
    """Files that `write_private` is writing now, and those that it never finished."""
    return [path for sort in _ASIDE for path in folder.glob(sort)]


def _is_private(status: os.stat_result) -> bool:
    return status.st_uid == os.geteuid() and not status.st_mode & 0o022


def _others_may_write(what: Path) -> PermissionError:
    return PermissionError(f"{what} belongs to another user, or others may write to it")
