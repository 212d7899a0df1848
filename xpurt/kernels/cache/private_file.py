"""Files of this user alone: nothing that another user could have written is read.

They are written aside and renamed, so that processes may share a folder without a lock.
A process that is killed in between leaves what it had written: see `unfinished`.
"""

import os
import stat
import tempfile
from pathlib import Path

_UNFINISHED = "unfinished-"
# Those of xpurt 0.1 have the names that mkstemp gives.
_ASIDE = (f"{_UNFINISHED}*", "tmp????????")


def read_private(path: Path) -> bytes:
    """The content of a file. Raises FileNotFoundError; another OSError for a file or
    folder that belongs, or is open, to others, and for what is no plain file."""
    # A link that others made is not followed.
    with os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW), "rb") as file:
        own = os.fstat(file.fileno())
        if not stat.S_ISREG(own.st_mode):
            raise OSError(f"{path} is no plain file")
        for status, what in ((own, path), (path.parent.stat(), path.parent)):
            if not _is_private(status):
                raise _others_may_write(what)
        return file.read()


def write_private(path: Path, content: bytes) -> None:
    """Replaces the file at once; its folder is made if need be. Raises OSError."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    if not _is_private(path.parent.stat()):
        raise _others_may_write(path.parent)
    # For this user alone.
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=_UNFINISHED)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def unfinished(folder: Path) -> list[Path]:
    """Files that `write_private` writes at this moment, and those that it never ended."""
    return [path for sort in _ASIDE for path in folder.glob(sort)]


def _is_private(status: os.stat_result) -> bool:
    return status.st_uid == os.geteuid() and not status.st_mode & 0o022


def _others_may_write(what: Path) -> PermissionError:
    return PermissionError(f"{what} belongs to another user, or others may write to it")
