"""Callbacks of torch.xpu._gpu_trace: the events that a sanitizer of streams gets."""

from own_process import output

WATCH = """
import torch, xpurt
import torch.xpu._gpu_trace as gpu_trace
torch.xpu.init()
seen = []
for name in ("event_creation", "event_deletion", "event_record", "event_wait",
             "memory_allocation", "memory_deallocation", "stream_creation",
             "device_synchronization", "stream_synchronization",
             "event_synchronization"):
    register = getattr(gpu_trace, f"register_callback_for_{name}")
    register(lambda *told, name=name: seen.append((name, *told)))
"""


def test_nobody_is_told_unasked() -> None:
    code = WATCH + "torch.ones(3, device='xpu'); print(seen)"
    assert output(code) == "[]"


def test_memory() -> None:
    code = (
        WATCH
        + """
torch._C._activate_gpu_trace()
tensor = torch.empty(3, device="xpu")
address = tensor.data_ptr()
del tensor
print(seen == [("memory_allocation", address), ("memory_deallocation", address)])
"""
    )
    assert output(code) == "True"


def test_streams_and_events() -> None:
    code = (
        WATCH
        + """
torch._C._activate_gpu_trace()
stream = torch.xpu.Stream()
queue = stream.sycl_queue
event = torch.xpu.Event()
event.record(stream)
mark = event.sycl_event
event.wait(stream)
event.synchronize()
stream.synchronize()
torch.xpu.synchronize()
del event
expected = [("stream_creation", queue), ("event_creation", mark),
            ("event_record", mark, queue), ("event_wait", mark, queue),
            ("event_synchronization", mark), ("stream_synchronization", queue),
            ("device_synchronization",), ("event_deletion", mark)]
print(seen == expected or seen)
"""
    )
    assert output(code) == "True"
