"""A device that fails under AUTO, or loses its work."""

from own_process import output, run

from auto.script import auto

# The GPU is the one that computes, until it fails.
ON_A_GPU_THAT_FAILS = """
import warnings
from xpurt.testing import fail_virtual_gpu
warnings.simplefilter("always")
costs(1e9, 10)
xpurt.set_kernel_policy("sycl")
x = torch.arange(4096.0).to("xpu")
"""


def test_a_device_that_fails_is_taken_out_and_its_work_repeated() -> None:
    code = """
y = x + 1
print(ran_on("aten::add.Tensor"))
z = y * 1  # y is valid on the GPU alone
kept = x * 2; kept.cpu()
ran_on("")
fail_virtual_gpu()
with warnings.catch_warnings(record=True) as said:
    a = x + 2
    b = kept + 3
print(ran_on("aten::add.Tensor"), len(said), "failed, and is not used" in str(said[0].message))
print(torch.equal(a.cpu(), torch.arange(4096.0) + 2))
print(torch.equal(b.cpu(), torch.arange(4096.0) * 2 + 3))
try: print((y + 1).sum().item())
except RuntimeError as error: print("failed before; what it alone held is lost" in str(error))
del y, z
print((x + 5)[0].item())
"""
    assert auto(ON_A_GPU_THAT_FAILS + code, XPURT_LEARN="0") == [
        "{'gpu': 1}",
        "{'cpu': 2} 1 True",
        "True",
        "True",
        "True",
        "5.0",
    ]


def test_a_device_that_loses_work_is_taken_out_where_that_is_waited_for() -> None:
    code = """
kept = x * 2; kept.cpu()
torch.xpu.synchronize(); ran_on("")
fail_virtual_gpu(running=True)
y = x + 1
print(ran_on("aten::add.Tensor"))
with warnings.catch_warnings(record=True) as said:
    try: torch.xpu.current_stream().synchronize()
    except RuntimeError as error: print("What it had not finished is lost" in str(error))
print(len(said), "failed, and is not used" in str(said[0].message))
again = kept + 3
print(ran_on("aten::add.Tensor"), torch.equal(again.cpu(), torch.arange(4096.0) * 2 + 3))
try: y.cpu()
except RuntimeError as error: print("failed before; what it alone held is lost" in str(error))
torch.xpu.synchronize()
"""
    assert auto(ON_A_GPU_THAT_FAILS + code, XPURT_LEARN="0") == [
        "{'gpu': 1}",
        "True",
        "1 True",
        "{'cpu': 1} True",
        "True",
    ]


def test_an_event_tells_that_its_work_was_lost() -> None:
    code = """
import time, torch
from xpurt.testing import fail_virtual_gpu
x = torch.ones(4096, device="xpu")
torch.xpu.synchronize()
fail_virtual_gpu(running=True)
x + 1
event = torch.xpu.current_stream().record_event()
def poll():
    for _ in range(1000):
        if event.query(): return
        time.sleep(0.01)
for wait in (poll, event.synchronize, torch.xpu.synchronize):
    try: wait()
    except RuntimeError as error: print(str(error).split(":")[0])
"""
    ended = output(code, XPURT_MAPPING="GPU", XPURT_VIRTUAL_GPU="strict").splitlines()
    assert ended[:2] == ["work that the event marks, or waits for, failed"] * 2
    assert ended[2].startswith("work submitted earlier to stream")


def test_lost_work_ends_after_what_its_queue_got_before() -> None:
    """So what that uses can be freed."""
    code = """
import torch
from xpurt.testing import delay_virtual_gpu, fail_virtual_gpu
x, y = torch.ones(2, 4096, device="xpu")
x + 1, torch.xpu.synchronize()
delay_virtual_gpu(300_000)
x + 1
before = torch.xpu.current_stream().record_event()
fail_virtual_gpu(running=True)
y + 1
after = torch.xpu.current_stream().record_event()
try: after.synchronize()
except RuntimeError as error: print(str(error).split(":")[0], before.query())
try: torch.xpu.synchronize()
except RuntimeError: pass
"""
    ended = output(code, XPURT_MAPPING="GPU", XPURT_VIRTUAL_GPU="strict")
    assert ended == "work that the event marks, or waits for, failed True"


def test_polling_a_stream_ends_if_its_work_was_lost() -> None:
    code = """
import time, torch
from xpurt.testing import fail_virtual_gpu
x = torch.ones(4096, device="xpu")
torch.xpu.synchronize()
fail_virtual_gpu(running=True)
x + 1
ends = time.monotonic() + 10
while not torch.xpu.current_stream().query():
    assert time.monotonic() < ends
try: torch.xpu.synchronize()
except RuntimeError as error: print(str(error).split(" to ")[0])
"""
    ended = output(code, XPURT_MAPPING="GPU", XPURT_VIRTUAL_GPU="strict")
    assert ended == "work submitted earlier"


def test_a_copy_finds_out_that_work_was_lost() -> None:
    code = """
torch.xpu.synchronize()
fail_virtual_gpu(running=True)
y = x + 1
with warnings.catch_warnings(record=True) as said:
    try: print(y.cpu())
    except RuntimeError as error: print("could not be submitted" in str(error))
print(len(said), "failed, and is not used" in str(said[0].message))
try: torch.xpu.synchronize()
except RuntimeError as error: print("What it had not finished is lost" in str(error))
print((x + 5)[0].item())
torch.xpu.synchronize()
"""
    assert auto(ON_A_GPU_THAT_FAILS + code, XPURT_LEARN="0") == [
        "True",
        "1 True",
        "True",
        "5.0",
    ]


def test_a_device_may_fail_after_so_many_kernels() -> None:
    ended = run(
        """
import torch, xpurt
x = torch.ones(4096, device="xpu")
try:
    for i in range(10): x = x.tanh()
except RuntimeError as error: print(i, "could not be submitted" in str(error))
""",
        XPURT_MAPPING="GPU",
        XPURT_VIRTUAL_GPU="strict",
        XPURT_VIRTUAL_GPU_FAIL_AFTER="4",
        XPURT_KERNEL_POLICY="sycl",
    )
    number, said = ended.stdout.split()
    assert int(number) <= 4
    assert said == "True"
