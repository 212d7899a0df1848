"""non_blocking copies with pinned memory, on a device that is slow and unreadable."""

from own_process import output

SLOW_GPU = {
    "XPURT_MAPPING": "GPU",
    "XPURT_VIRTUAL_GPU": "strict",
    "XPURT_VIRTUAL_GPU_DELAY_US": "200000",
}

CODE = """
import time, torch, xpurt
xpurt.set_kernel_policy("sycl")
busy = torch.ones(8, device="xpu")
(busy + 1).cpu()  # built

def queued(function):
    stream = torch.xpu.current_stream()
    result = busy + 1  # lasts 0.2 s
    value = function()
    return value, not stream.query()

pinned = torch.full((1000,), 5.0).pin_memory()
up, pending = queued(lambda: pinned.to("xpu", non_blocking=True))
address = pinned.data_ptr()
del pinned
other = torch.full((1000,), 7.0, pin_memory=True)
print("up", pending, other.data_ptr() != address, up.cpu().unique().tolist())
del other
again = [torch.empty(1000, pin_memory=True) for _ in range(2)]
print("reused", address in [t.data_ptr() for t in again])

back = torch.zeros(1000).pin_memory()
_, pending = queued(lambda: back.copy_(up, non_blocking=True))
torch.xpu.synchronize()
print("down", pending, back.unique().tolist())

plain = torch.full((1000,), 6.0)
up, pending = queued(lambda: plain.to("xpu", non_blocking=True))
plain.fill_(0)
print("plain up", pending, up.cpu().unique().tolist())
_, pending = queued(lambda: plain.copy_(up, non_blocking=True))
print("plain down", pending, plain.unique().tolist())
_, pending = queued(lambda: back.copy_(up * 2))
print("blocking", pending, back.unique().tolist())
"""


def test_only_copies_with_pinned_memory_return_before_they_are_done() -> None:
    assert output(CODE, **SLOW_GPU).splitlines() == [
        "up True True [5.0]",
        "reused True",
        "down True [5.0]",
        "plain up False [6.0]",
        "plain down False [6.0]",
        "blocking False [12.0]",
    ]
