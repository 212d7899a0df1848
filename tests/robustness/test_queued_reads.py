"""Results of PyTorch's own kernels, freed while queued work still reads them."""

import torch

import xpurt
from xpurt import _C

COUNT = 1 << 16


def native(value: float, device: torch.device) -> torch.Tensor:
    """Made by a kernel of PyTorch's; no row has this op."""
    with xpurt.kernel_policy("native"):
        return torch.full((COUNT,), value / 2, device=device).cumsum(0).fill_(value)


def queued_sum(tensor: torch.Tensor) -> torch.Tensor:
    """On the queue, whatever is there before it."""
    with xpurt.kernel_policy("sycl"):
        return tensor + tensor


def delay(stream: torch.Stream) -> None:
    _C._submit_sleep(stream.stream_id, stream.device_index, 0.1)


def test_on_the_same_stream(xpu: torch.device) -> None:
    tensor = native(1.0, xpu)
    delay(torch.xpu.current_stream())
    total = queued_sum(tensor)
    del tensor
    # One of them gets the block that was freed.
    others = [native(float(i), xpu) for i in range(4)]
    assert total.unique().tolist() == [2.0]
    assert [other.unique().tolist() for other in others] == [[0], [1], [2], [3]]


def test_on_another_stream_that_is_recorded(xpu: torch.device) -> None:
    torch.xpu.synchronize()
    stream = torch.xpu.Stream(xpu)
    tensor = native(1.0, xpu)
    with torch.xpu.stream(stream):
        delay(stream)
        total = queued_sum(tensor)
    tensor.record_stream(stream)
    address = tensor.data_ptr()
    del tensor
    others = [native(float(i), xpu) for i in range(4)]
    if xpurt.get_xpu_mapping() == "CPU":
        assert not stream.query(), "the work ended too soon for the test"
        assert address not in [other.data_ptr() for other in others]
    stream.synchronize()
    assert total.unique().tolist() == [2.0]
    del others, total


def test_a_base_that_only_its_view_keeps(xpu: torch.device) -> None:
    view = native(1.0, xpu)[COUNT // 2 :]
    delay(torch.xpu.current_stream())
    total = queued_sum(view)
    del view
    native(5.0, xpu)
    assert total.unique().tolist() == [2.0]


def test_an_operand_that_a_native_op_replaces(xpu: torch.device) -> None:
    tensor = native(1.0, xpu)
    totals = []
    for _ in range(5):
        delay(torch.xpu.current_stream())
        totals.append(queued_sum(tensor))
        with xpurt.kernel_policy("native"):
            tensor.mul_(2)  # in place, where the queued sum reads
            tensor = tensor.cumsum(0).fill_(tensor[0].item())
    assert [t.unique().tolist() for t in totals] == [[2], [4], [8], [16], [32]]


def test_a_copy_from_the_cpu_waits_for_readers(xpu: torch.device) -> None:
    tensor = native(1.0, xpu)
    delay(torch.xpu.current_stream())
    total = queued_sum(tensor)
    tensor.copy_(torch.full((COUNT,), 9.0))
    assert total.unique().tolist() == [2.0]
    assert tensor.unique().tolist() == [9.0]
