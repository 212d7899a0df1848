"""Binaries of kernels that processes leave for each other."""

import os
import signal
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest
from own_process import output, run

from xpurt.kernels.cache.disk_cache import DiskCache

PROGRAM = """
import torch, xpurt
from xpurt import _C
xpurt.set_kernel_policy("sycl")
x = torch.arange(5.0, device="xpu")
print((x * 2).exp().cpu().sum().item(), _C.testing.built_kernels(), _C.testing.loaded_kernels())
"""

MEMORY = """
import torch, xpurt

def bytes_held():
    return int(open("/proc/self/statm").read().split()[1]) * 4096

xpurt.set_kernel_policy("sycl")
x = torch.rand(8, device="xpu")
x.sin().double().half()  # what a compiler holds by itself is there
before = bytes_held()
for name in "cos tan exp log sqrt floor ceil tanh erf log2 exp2 sinh cosh asin".split():
    getattr(torch, name)(x)
    getattr(torch, name)(x.double())
torch.xpu.synchronize()
print((bytes_held() - before) / 28)
"""


@pytest.fixture
def cache(tmp_path: Path) -> DiskCache:
    return DiskCache(tmp_path / "made" / "kernels", 10_000)


def test_what_is_stored_is_loaded(cache: DiskCache) -> None:
    assert cache.load(b"one") == b""
    cache.store(b"one", b"first")
    cache.store(b"two", b"second")
    assert cache.load(b"one") == b"first"
    assert cache.load(b"two") == b"second"
    again = DiskCache(cache.folder, 10_000)
    assert again.load(b"one") == b"first"


def test_it_is_the_user_s_own(cache: DiskCache) -> None:
    cache.store(b"one", b"first")
    ((_, status),) = cache.files()
    assert status.st_mode & 0o777 == 0o600
    assert cache.folder.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("content", [b"", b"short", b"x" * 100])
def test_damage_is_seen(cache: DiskCache, content: bytes) -> None:
    cache.store(b"one", b"first")
    ((path, _),) = cache.files()
    path.write_bytes(content)
    assert cache.load(b"one") == b""
    cache.store(b"one", b"anew")
    assert cache.load(b"one") == b"anew"


def test_one_bit_is_damage_too(cache: DiskCache) -> None:
    cache.store(b"one", b"first")
    ((path, _),) = cache.files()
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    assert cache.load(b"one") == b""


def test_what_others_may_write_is_not_loaded(cache: DiskCache) -> None:
    cache.store(b"one", b"first")
    ((path, _),) = cache.files()
    path.chmod(0o666)
    assert cache.load(b"one") == b""
    path.chmod(0o600)
    assert cache.load(b"one") == b"first"
    cache.folder.chmod(0o777)
    assert cache.load(b"one") == b""
    with pytest.warns(UserWarning, match="others may write"):
        cache.store(b"two", b"second")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_what_belongs_to_another_user_is_not_loaded(cache: DiskCache) -> None:
    cache.store(b"one", b"first")
    ((path, _),) = cache.files()
    os.chown(path, 12345, -1)
    assert cache.load(b"one") == b""


def test_a_link_is_not_followed(cache: DiskCache, tmp_path: Path) -> None:
    cache.store(b"one", b"first")
    ((path, _),) = cache.files()
    elsewhere = path.rename(tmp_path / "elsewhere")
    path.symlink_to(elsewhere)
    assert cache.load(b"one") == b""


def test_the_least_recently_used_goes_first(tmp_path: Path) -> None:
    cache = DiskCache(tmp_path, 10_000)
    for number in range(4):
        cache.store(b"%d" % number, b"x" * 3_000)
        ((path, _),) = [each for each in cache.files() if each[1].st_mtime > 1_000]
        os.utime(path, (number, number))  # older than what follows
    cache.load(b"0")
    DiskCache(tmp_path, 10_000).store(b"new", b"y" * 3_000)  # trims at its first
    assert cache.load(b"0") == b"x" * 3_000
    assert cache.load(b"new") == b"y" * 3_000
    assert cache.load(b"1") == b""
    assert cache.size_bytes() <= 10_000


def test_what_is_too_large_is_not_kept(tmp_path: Path) -> None:
    cache = DiskCache(tmp_path, 1_000)
    cache.store(b"one", b"x" * 2_000)
    assert cache.files() == []


def test_no_room_is_said_once(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    cache = DiskCache(tmp_path / "file" / "kernels", 10_000)
    with pytest.warns(UserWarning, match="XPURT_CACHE_DIR"):
        cache.store(b"one", b"first")
    cache.store(b"two", b"second")  # a second warning would be an error
    assert cache.load(b"one") == b""


@pytest.mark.rest
def test_a_process_takes_what_another_built(tmp_path: Path) -> None:
    first = output(PROGRAM, XPURT_CACHE_DIR=str(tmp_path)).split()
    assert first[1:] == [first[1], "0"]
    assert int(first[1]) > 0
    second = output(PROGRAM, XPURT_CACHE_DIR=str(tmp_path)).split()
    assert second == [first[0], first[1], first[1]]
    for path, _ in DiskCache(tmp_path, 1).files():
        path.write_bytes(b"damaged")
    third = output(PROGRAM, XPURT_CACHE_DIR=str(tmp_path)).split()
    assert third == first


def test_a_kernel_built_here_takes_no_more_memory_than_a_binary() -> None:
    # Intel's CPU runtime held 3.4 MB for a program from source, with its compiler.
    assert float(output(MEMORY, XPURT_CACHE_SIZE="0")) < 1.5e6


def test_nothing_is_kept_if_nobody_wants_it(tmp_path: Path) -> None:
    output(PROGRAM, XPURT_CACHE_DIR=str(tmp_path), XPURT_CACHE_SIZE="0")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.rest
def test_processes_share_a_folder(tmp_path: Path) -> None:
    program = partial(run, PROGRAM, XPURT_CACHE_DIR=str(tmp_path))
    with ThreadPoolExecutor(3) as at_once:
        runs = [each.result() for each in [at_once.submit(program) for _ in range(3)]]
    assert [run.returncode for run in runs] == [0, 0, 0]
    assert len({run.stdout.split()[0] for run in runs}) == 1
    assert not list(tmp_path.glob("tmp*"))


def test_the_command_shows_and_clears_it(tmp_path: Path) -> None:
    DiskCache(tmp_path, 10_000).store(b"one", b"first")

    def said(*arguments: str) -> str:
        code = f"from xpurt.command_line.cli import main; main({['cache', *arguments]})"
        return output(code, XPURT_CACHE_DIR=str(tmp_path))

    assert f"{tmp_path}: 1 kernels, 37 of" in said()
    assert said("--clear") == f"removed 1 kernels from {tmp_path}"
    assert DiskCache(tmp_path, 1).files() == []


KILLED = """
import os, signal, pathlib
from xpurt.kernels.cache.disk_cache import DiskCache
pathlib.Path.replace = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
folder = pathlib.Path(os.environ["XPURT_CACHE_DIR"])
DiskCache(folder, 10_000).store(b"one", b"x" * 3_000)
"""


def test_what_a_killed_process_leaves_counts_and_goes(tmp_path: Path) -> None:
    assert run(KILLED, XPURT_CACHE_DIR=str(tmp_path)).returncode == -signal.SIGKILL
    (left,) = tmp_path.iterdir()
    cache = DiskCache(tmp_path, 10_000)
    assert cache.files() == []
    assert cache.size_bytes() == left.stat().st_size > 3_000
    cache.store(b"two", b"second")  # trims
    assert left.exists(), "another process may be writing it at this moment"
    os.utime(left, (1, 1))
    DiskCache(tmp_path, 10_000).store(b"three", b"third")
    assert not left.exists()
    assert len(cache.files()) == 2


def test_clearing_takes_what_was_left_unfinished(tmp_path: Path) -> None:
    for name in ("unfinished-abcdefgh", "tmpabcdefgh"):
        (tmp_path / name).write_bytes(b"x" * 100)
    (tmp_path / "costs-1.json").write_text("a calibration")
    cache = DiskCache(tmp_path, 10_000)
    assert cache.size_bytes() == 200
    assert cache.clear() == 0
    assert [path.name for path in tmp_path.iterdir()] == ["costs-1.json"]
