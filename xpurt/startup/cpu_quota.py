"""The number of processors this process may use, by its affinity and control groups.

The affinity limits where threads run, and SYCL's CPU driver follows it. The quota of a
control group (a container's ``--cpus``) limits time: if there are more threads than the
quota pays for, all are stopped together, in the middle of a kernel, until the next
period.
"""

import os
from collections.abc import Iterator
from pathlib import Path


def threads_within_quota(root: Path = Path("/")) -> int | None:
    """The largest number of threads that can run all the time; None if nothing but the
    affinity limits them.

    root: the parent directory of ``proc`` and ``sys``.
    """
    quotas = [quota for group in _groups(root) for quota in _quotas(group)]
    if not quotas:
        return None
    threads = max(1, int(min(quotas)))
    return threads if threads < len(os.sched_getaffinity(0)) else None


def _groups(root: Path) -> Iterator[Path]:
    """The directories of the process's control groups that limit processors, and of
    their parents. In a container the mount shows the process's own group."""
    try:
        lines = (root / "proc/self/cgroup").read_text().splitlines()
    except OSError:
        return
    for line in lines:
        # hierarchy:controllers:path
        _, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if not controllers:
            mounts = [root / "sys/fs/cgroup", root / "sys/fs/cgroup/unified"]
        elif "cpu" in controllers.split(","):
            mounts = [root / "sys/fs/cgroup" / name for name in (controllers, "cpu")]
        else:
            continue
        below = Path(path.lstrip("/"))
        for mount in mounts:
            for group in (below, *below.parents):
                yield mount / group


def _quotas(group: Path) -> Iterator[float]:
    """The quota of a group in processors (seconds per second), if it has one."""
    try:  # version 2: "quota period", or "max period"
        quota, period = (group / "cpu.max").read_text().split()
        if quota != "max":
            yield int(quota) / int(period)
    except (OSError, ValueError, ZeroDivisionError):
        pass
    try:  # version 1: -1 is no limit
        micros = int((group / "cpu.cfs_quota_us").read_text())
        if micros > 0:
            yield micros / int((group / "cpu.cfs_period_us").read_text())
    except (OSError, ValueError, ZeroDivisionError):
        pass
