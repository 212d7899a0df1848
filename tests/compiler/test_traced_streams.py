"""Which compiled code has to do with a stream: none of a program on CPU tensors."""

from typing import Any

import torch
from own_process import output

COUNTED = """
import torch
calls = 0
ask = torch._dynamo.utils.get_current_stream
def counted(device):
    global calls
    calls += 1
    return ask(device)
torch._dynamo.utils.get_current_stream = counted
"""


def test_a_compiled_program_on_cpu_tensors_does_not_start_xpu() -> None:
    code = f"""{COUNTED}
compiled = torch.compile(lambda x: x + 1, backend="eager")
for _ in range(3):
    compiled(torch.ones(2))
print(calls, torch.xpu.is_initialized())
"""
    assert output(code).split() == ["0", "False"]


def test_code_without_streams_does_not_ask_for_one() -> None:
    code = f"""{COUNTED}
x = torch.ones(2, device="xpu")
compiled = torch.compile(lambda x: x + 1, backend="eager")
for _ in range(3):
    compiled(x), compiled(x.cpu())
print(calls)
"""
    assert output(code).strip() == "0"


def test_the_first_use_of_xpu_may_be_a_stream_in_traced_code() -> None:
    code = """
import torch
@torch.compile(backend="eager")
def traced(x):
    event = torch.xpu.Event()
    y = x + 1
    event.record()
    event.synchronize()
    torch.accelerator.current_stream().synchronize()
    return y
print(traced(torch.ones(2)).tolist(), torch.xpu.is_initialized())
"""
    assert output(code).strip() == "[2.0, 2.0] True"


def test_traced_code_sees_the_stream_of_each_call(xpu: torch.device) -> None:
    seen: list[Any] = []

    @torch.compile(backend="eager")
    def traced(x: torch.Tensor) -> tuple[torch.Tensor, torch.Stream]:
        return x + 1, torch.accelerator.current_stream()

    x = torch.ones(2, device=xpu)
    streams = [torch.xpu.Stream() for _ in range(3)]
    for stream in streams:
        with torch.xpu.stream(stream):
            seen.append(traced(x)[1])
    assert [each.stream_id for each in seen] == [each.stream_id for each in streams]
