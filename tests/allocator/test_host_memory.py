"""Free and total memory, read from made-up /proc and cgroup files."""

from pathlib import Path

import pytest

from xpurt import _C

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30


@pytest.fixture
def root(tmp_path: Path) -> Path:
    write(tmp_path, "proc/meminfo", meminfo(total=16 * GIB, free=8 * GIB, swap=GIB))
    return tmp_path


def meminfo(total: int, free: int, swap: int) -> str:
    return (
        f"MemTotal: {total // KIB} kB\nMemFree: 1 kB\n"
        f"MemAvailable: {free // KIB} kB\nSwapFree: {swap // KIB} kB\n"
    )


def write(root: Path, path: str, text: str) -> None:
    file = root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


def test_no_cgroup(root: Path) -> None:
    assert _C.host_memory(str(root)) == (16 * GIB, 8 * GIB, GIB)


def test_version_2(root: Path) -> None:
    write(root, "proc/self/cgroup", "0::/user/job\n")
    write(root, "sys/fs/cgroup/user/job/memory.max", f"{4 * GIB}\n")
    write(root, "sys/fs/cgroup/user/job/memory.current", f"{3 * GIB}\n")
    write(root, "sys/fs/cgroup/user/job/memory.stat", f"anon 5\ninactive_file {GIB}\n")
    # Of the 3 GiB in use, 1 GiB is page cache.
    assert _C.host_memory(str(root)) == (4 * GIB, 2 * GIB, 0)


def test_version_2_limited_by_a_parent(root: Path) -> None:
    write(root, "proc/self/cgroup", "0::/user/job\n")
    write(root, "sys/fs/cgroup/user/job/memory.max", "max\n")
    write(root, "sys/fs/cgroup/user/memory.max", f"{2 * GIB}\n")
    write(root, "sys/fs/cgroup/user/memory.current", f"{GIB}\n")
    assert _C.host_memory(str(root)) == (2 * GIB, GIB, 0)


def test_a_child_tighter_in_use_than_its_parent(root: Path) -> None:
    write(root, "proc/self/cgroup", "0::/user/job\n")
    write(root, "sys/fs/cgroup/user/job/memory.max", f"{2 * GIB}\n")
    write(root, "sys/fs/cgroup/user/job/memory.current", "0\n")
    write(root, "sys/fs/cgroup/user/memory.max", f"{4 * GIB}\n")
    write(root, "sys/fs/cgroup/user/memory.current", f"{3 * GIB + 512 * MIB}\n")
    assert _C.host_memory(str(root)) == (2 * GIB, 512 * MIB, 0)


def test_inside_a_container_the_mount_is_the_group(root: Path) -> None:
    write(root, "proc/self/cgroup", "0::/docker/abc\n")
    write(root, "sys/fs/cgroup/memory.max", f"{4 * GIB}\n")
    write(root, "sys/fs/cgroup/memory.current", f"{GIB}\n")
    assert _C.host_memory(str(root)) == (4 * GIB, 3 * GIB, 0)


def test_version_1(root: Path) -> None:
    write(root, "proc/self/cgroup", "5:cpu,cpuacct:/\n4:memory:/job\n")
    memory = "sys/fs/cgroup/memory/job"
    write(root, f"{memory}/memory.limit_in_bytes", f"{4 * GIB}\n")
    write(root, f"{memory}/memory.usage_in_bytes", f"{2 * GIB}\n")
    write(root, f"{memory}/memory.stat", f"total_inactive_file {512 * MIB}\n")
    write(root, "sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n")
    write(root, "sys/fs/cgroup/memory/memory.usage_in_bytes", f"{9 * GIB}\n")
    assert _C.host_memory(str(root)) == (4 * GIB, 2 * GIB + 512 * MIB, 0)


def test_nothing_can_be_read(tmp_path: Path) -> None:
    assert _C.host_memory(str(tmp_path)) == (0, 0, 0)
