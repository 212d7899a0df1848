"""Threads, affinity and quotas: what a process may use is not exceeded."""

import os
from pathlib import Path

import pytest
from own_process import fresh_output as output

from xpurt.startup.cpu_quota import threads_within_quota

# Prints, for each policy, how many threads took part in an op: those that used more
# than a tenth of its processor time.
COUNT = """
import os, sys
{first}
import torch, xpurt
{then}

def used():
    result = {{}}
    for task in os.listdir("/proc/self/task"):
        try:
            with open(f"/proc/self/task/{{task}}/schedstat") as file:
                result[task] = int(file.read().split()[0])
        except OSError:
            pass
    return result

x = torch.ones(1500, 1500, device="xpu")
for policy in {policies}:
    xpurt.set_kernel_policy(policy)
    for op in (lambda: x @ x, lambda: torch.exp(x)):
        op()
        torch.xpu.synchronize()
        before = used()
        for _ in range(10):
            op()
        torch.xpu.synchronize()
        spent = [ns - before.get(task, 0) for task, ns in used().items()]
        print(policy, sum(ns > sum(spent) / 10 for ns in spent))
"""


def counts(
    first: str = "", then: str = "", policies: tuple[str, ...] = ("native",)
) -> set[str]:
    code = COUNT.format(first=first, then=then, policies=policies)
    return set(output(code, timeout=120).splitlines())


@pytest.mark.rest
@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="a single processor")
def test_the_number_of_threads_of_native_ops() -> None:
    assert counts(then="torch.set_num_threads(1)") == {"native 1"}
    assert "native 2" in counts(then="torch.set_num_threads(2)")


def test_one_processor_by_affinity() -> None:
    code = """
    import os
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    import torch, time, xpurt
    x = torch.ones(1200, 1200, device="xpu")
    print(torch.xpu.get_device_properties(0).max_compute_units)
    for policy in ("sycl", "native"):
        xpurt.set_kernel_policy(policy)
        x @ x, torch.exp(x)
        torch.xpu.synchronize()
        cpu, wall = time.process_time(), time.perf_counter()
        for _ in range(10):
            x @ x, torch.exp(x)
        torch.xpu.synchronize()
        cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
        print(cpu < 1.2 * wall + 0.02)
    affinities = {tuple(os.sched_getaffinity(int(t)))
                  for t in os.listdir("/proc/self/task")}
    print(all(len(each) == 1 for each in affinities))
    """
    assert output(code).splitlines() == ["1", "True", "True", "True"]


def write(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


@pytest.fixture
def eight(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(8)))


V2 = {"proc/self/cgroup": "0::/a/b\n"}
V1 = {"proc/self/cgroup": "4:cpu,cpuacct:/a/b\n3:memory:/\n0::/\n"}


@pytest.mark.usefixtures("eight")
@pytest.mark.parametrize(
    ("files", "threads"),
    [
        ({}, None),
        (V2, None),
        ({**V2, "sys/fs/cgroup/a/b/cpu.max": "max 100000\n"}, None),
        ({**V2, "sys/fs/cgroup/a/b/cpu.max": "300000 100000\n"}, 3),
        ({**V2, "sys/fs/cgroup/a/b/cpu.max": "250000 100000\n"}, 2),
        ({**V2, "sys/fs/cgroup/a/b/cpu.max": "50000 100000\n"}, 1),
        ({**V2, "sys/fs/cgroup/a/b/cpu.max": "1600000 100000\n"}, None),
        # A parent's limit holds for its children; a container sees itself at the top.
        (
            {
                **V2,
                "sys/fs/cgroup/a/b/cpu.max": "600000 100000\n",
                "sys/fs/cgroup/a/cpu.max": "400000 100000\n",
            },
            4,
        ),
        ({**V2, "sys/fs/cgroup/cpu.max": "200000 100000\n"}, 2),
        ({**V2, "sys/fs/cgroup/cpu.max": "what is this\n"}, None),
        (
            {
                **V1,
                "sys/fs/cgroup/cpu,cpuacct/a/b/cpu.cfs_quota_us": "200000\n",
                "sys/fs/cgroup/cpu,cpuacct/a/b/cpu.cfs_period_us": "100000\n",
            },
            2,
        ),
        (
            {
                **V1,
                "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "150000\n",
                "sys/fs/cgroup/cpu/cpu.cfs_period_us": "50000\n",
            },
            3,
        ),
        (
            {
                **V1,
                "sys/fs/cgroup/cpu/a/b/cpu.cfs_quota_us": "-1\n",
                "sys/fs/cgroup/cpu/a/b/cpu.cfs_period_us": "100000\n",
            },
            None,
        ),
    ],
    ids=str,
)
def test_quotas(tmp_path: Path, files: dict[str, str], threads: int | None) -> None:
    assert threads_within_quota(write(tmp_path, files)) == threads


def test_the_driver_is_told_before_it_is_loaded() -> None:
    code = """
    import os, torch, xpurt
    from xpurt.startup import cpu_quota
    cpu_quota.threads_within_quota = lambda: 1
    torch.ones(1, device="xpu")
    print(os.environ["DPCPP_CPU_NUM_CUS"])
    """
    assert output(code, DPCPP_CPU_NUM_CUS="") == "1"
    assert output(code, DPCPP_CPU_NUM_CUS="2") == "2"


def test_onednn_has_no_more_threads_than_the_driver() -> None:
    """Seen on machines with two cores or more."""
    code = """
    import ctypes, torch, xpurt
    from xpurt.startup import driver, tbb_threads
    torch.ones(1, device="xpu")
    print(tbb_threads.in_use(ctypes.CDLL(str(driver.library_directory() / driver.TBB))))
    """
    assert output(code, DPCPP_CPU_NUM_CUS="1") == "1"
