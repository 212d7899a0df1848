"""A disk cache of the binaries that drivers build from kernels, shared by processes.

One file per binary, and one of what C++ reads of the rows. Its name is the hash of
everything that the content depends on. A file begins with the hash of its content, which
reveals damage; what a damaged file held is made again. A file that another user could
have written is never loaded: see private_file.
"""

import hashlib
import os
import platform
import time
import warnings
from collections.abc import Iterable
from functools import cache
from pathlib import Path

from xpurt.kernels.cache.private_file import read_private, unfinished, write_private

_SUFFIX = ".kernel"
_HASH_BYTES = hashlib.sha256().digest_size
# Number of stored binaries between two checks of the folder's size.
_STORED_BETWEEN_TRIMS = 32
# No process writes a file for this long: an older one was left by a killed process.
_ABANDONED_S = 600


class DiskCache:
    """Binaries in `folder`, of at most `limit_bytes` together. The least recently used
    ones are removed first. The folder is created when the first binary is stored."""

    def __init__(self, folder: Path, limit_bytes: int) -> None:
        self.folder = folder
        self.limit_bytes = limit_bytes
        self._stored = 0
        self._warned = False

    def load(self, identity: bytes) -> bytes:
        """The binary, or b"" if there is none, or only an untrusted or damaged one."""
        path = self._path(identity)
        try:
            content = read_private(path)
            os.utime(path)
        except OSError:
            return b""
        binary = content[_HASH_BYTES:]
        if hashlib.sha256(binary).digest() != content[:_HASH_BYTES]:
            return b""
        return binary

    def store(self, identity: bytes, binary: bytes, *, warns: bool = True) -> None:
        """Stores the binary. If the folder can't be written to, or belongs to another
        user, a warning reports this once if it `warns`, and nothing is stored."""
        if len(binary) + _HASH_BYTES > self.limit_bytes:
            return
        try:
            write_private(
                self._path(identity), hashlib.sha256(binary).digest() + binary
            )
        except FileNotFoundError:
            return  # another process cleared the folder meanwhile
        except OSError as error:
            if warns:
                self._warn(str(error))
            return
        self._stored += 1
        if self._stored % _STORED_BETWEEN_TRIMS == 1:
            self._trim()

    def files(self) -> list[tuple[Path, os.stat_result]]:
        """The files of binaries, the least recently used first."""
        found = _with_status(self.folder.glob(f"*{_SUFFIX}"))
        return sorted(found, key=lambda each: each[1].st_mtime_ns)

    def size_bytes(self) -> int:
        """The size of all binaries, with unfinished files of killed processes."""
        files = self.files() + self._unfinished()
        return sum(status.st_size for _, status in files)

    def clear(self) -> int:
        """Removes every binary, and returns their number. Raises OSError."""
        files = self.files()
        for path, _ in files + self._unfinished():
            path.unlink(missing_ok=True)
        return len(files)

    def _unfinished(self) -> list[tuple[Path, os.stat_result]]:
        return _with_status(unfinished(self.folder))

    def _path(self, identity: bytes) -> Path:
        digest = hashlib.sha256(processor() + identity).hexdigest()
        return self.folder / f"{digest}{_SUFFIX}"

    def _trim(self) -> None:
        for path, status in self._unfinished():
            if time.time() - status.st_mtime > _ABANDONED_S:
                path.unlink(missing_ok=True)
        size_bytes = self.size_bytes()
        for path, status in self.files():
            if size_bytes <= self.limit_bytes:
                break
            path.unlink(missing_ok=True)
            size_bytes -= status.st_size

    def _warn(self, reason: str) -> None:
        if self._warned:
            return
        self._warned = True
        warnings.warn(
            f"kernels are not kept on disk, and every process builds its own: {reason}. "
            "XPURT_CACHE_DIR names another folder; XPURT_CACHE_SIZE=0 keeps nothing.",
            stacklevel=2,
        )


def _with_status(paths: Iterable[Path]) -> list[tuple[Path, os.stat_result]]:
    found = []
    for path in paths:
        try:
            found.append((path, path.lstat()))
        except OSError:
            continue  # another process removed it
    return found


@cache
def processor() -> bytes:
    """The features of the processor. Processors of one name may differ in them, and a
    binary for a CPU has machine code."""
    text = platform.machine()
    try:
        with Path("/proc/cpuinfo").open() as file:
            text += next((line for line in file if line.startswith("flags")), "")
    except OSError:
        pass  # the driver's name of the device has to do
    return text.encode()
