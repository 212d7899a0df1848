"""Work waits for the data that it uses, on whichever device, and for nothing else.

The GPU of these processes takes DELAY longer for each kernel. An unneeded wait shows:
the GPU's work is done after it.
"""

import pytest

from auto.test_own_process import auto

DELAY_S = 0.6

SETUP = """
import time
def ones(n=1000):
    return torch.ones(n, device="xpu")
def warm_up():
    for kind in ("cpu", "gpu"):  # builds the kernels
        only(kind); t = ones(); t.mul_(2); t = t * 2; t = t + t; torch.xpu.synchronize()
def on(kind):
    only(kind)
def is_done():  # a queue is empty a moment after its last event
    for _ in range(10):
        if stream.query(): return True
        time.sleep(0.02)
    return False
stream = torch.xpu.current_stream()
only("cpu"); a, b = ones(), ones()
warm_up()
"""


def delayed(code: str) -> list[str]:
    delay_us = str(int(DELAY_S * 1e6))
    # A timed sample waits for its kernel.
    return auto(SETUP + code, XPURT_VIRTUAL_GPU_DELAY_US=delay_us, XPURT_LEARN="0")


def test_independent_chains_overlap() -> None:
    assert delayed(
        """
on("gpu"); b = b * 2
on("cpu")
for _ in range(5): a = a * 2
print(a.cpu()[0].item(), stream.query())     # the CPU's chain is done, the GPU's is not
print(b.cpu()[0].item(), is_done())
"""
    ) == ["32.0 False", "2.0 True"]


def test_native_ops_wait_for_their_operands() -> None:
    assert delayed(
        """
on("gpu"); b.mul_(2)
on("cpu"); a.mul_(3)
with xpurt.kernel_policy("native"):
    print(torch.flip(a, [0])[0].item(), a.sum().item() / 1000, stream.query())
    a.add_(torch.flip(a, [0]))
    print(a[0].item(), stream.query())
    print(torch.flip(b, [0])[0].item(), is_done())
"""
    ) == ["3.0 3.0 False", "6.0 False", "2.0 True"]


@pytest.mark.rest
def test_writers_wait_for_readers_of_the_same_copy() -> None:
    assert delayed(
        """
c = ones(); torch.xpu.synchronize()
on("gpu"); c = b * 2                 # reads a replica of b
b_on_gpu = b * 4                     # and again
on("cpu"); b.fill_(100)              # home may be written meanwhile
print(b.cpu()[0].item(), stream.query())
on("gpu"); d = b + b                 # the new b, into the replica that is still read
print(c.cpu()[0].item(), b_on_gpu.cpu()[0].item(), d.cpu()[0].item())
"""
    ) == ["100.0 False", "2.0 4.0 200.0"]


def test_reads_wait_for_writes_on_the_other_device() -> None:
    assert delayed(
        """
on("gpu"); b.mul_(2)
on("cpu"); c = b * 2
on("gpu"); c.mul_(2)
on("cpu"); b.mul_(10)
print(c.cpu()[0].item(), b.cpu()[0].item(), is_done())
"""
    ) == ["8.0 20.0 True"]


@pytest.mark.rest
def test_memory_that_is_handed_out_again_is_left_to_what_reads_it() -> None:
    assert delayed(
        """
big = 1 << 20
kept = torch.full((big,), 7.0, device="xpu"); torch.xpu.synchronize()
on("gpu")
gate = ones(); gate.mul_(2)          # the copy of `kept` comes behind this
source = kept * 1
del kept                             # still to be read by the copy, or by the kernel
on("cpu")
other = torch.empty(big, device="xpu"); other.fill_(1.0)
native = torch.zeros(big, device="xpu"); native.copy_(torch.full((big,), 2.0))
print(source.cpu().unique().tolist(), other.cpu().unique().tolist(),
      native.cpu().unique().tolist())
"""
    ) == ["[7.0] [1.0] [2.0]"]


def test_events_and_synchronize_cover_all_devices() -> None:
    assert delayed(
        """
on("gpu"); b.mul_(2)
on("cpu"); a.mul_(2)
done = stream.record_event()
print(done.query()); done.synchronize(); print(done.query(), is_done())
on("gpu"); b.mul_(2)
on("cpu"); a.mul_(2)
torch.xpu.synchronize()
print(stream.query())
on("gpu"); b.mul_(2)
on("cpu"); a.mul_(2)
other = torch.xpu.Stream()
other.wait_stream(stream)
with torch.xpu.stream(other):
    c = ones(); c.mul_(2)
other.synchronize()
print(is_done())
"""
    ) == ["False", "True True", "True", "True"]


@pytest.mark.rest
def test_a_wait_for_an_event_holds_up_every_device() -> None:
    assert delayed(
        """
other = torch.xpu.Stream()
with torch.xpu.stream(other):
    on("gpu"); b.mul_(2)
    done = other.record_event()
stream.wait_event(done)
on("cpu"); a.mul_(2)
stream.synchronize()
print(done.query())
"""
    ) == ["True"]


@pytest.mark.rest
def test_work_of_others_keeps_total_order() -> None:
    assert delayed(
        """
on("gpu"); b.mul_(2)
_C._submit_sleep(stream.stream_id, stream.device_index, 0.0)  # behind the GPU
on("cpu"); a.mul_(2)                                          # behind that
print(a.cpu()[0].item(), is_done())
"""
    ) == ["2.0 True"]
