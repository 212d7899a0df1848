"""Views share their base's storage; in-place ops and resizing reach it."""

import copy
import io
from collections.abc import Callable

import pytest
import torch

VIEWS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "view": lambda t: t.view(6, 4),
    "t": lambda t: t.t(),
    "select": lambda t: t[1],
    "slice": lambda t: t[1:, ::2],
    "as_strided": lambda t: t.as_strided((2, 2), (7, 1), 1),
    "unfold": lambda t: t.unfold(1, 2, 2),
    "expand": lambda t: t[:, None].expand(4, 3, 6),
    "flatten": lambda t: t.flatten(),
    "diagonal": lambda t: t.diagonal(),
    "view_as_complex": lambda t: torch.view_as_complex(t.view(4, 3, 2)),
    "bytes": lambda t: t.view(torch.uint8),
}


@pytest.mark.parametrize("view", VIEWS.values(), ids=list(VIEWS))
@pytest.mark.parametrize("inference", [False, True])
def test_a_view_shares_its_storage(
    view: Callable[[torch.Tensor], torch.Tensor], inference: bool, xpu: torch.device
) -> None:
    with torch.inference_mode(inference):
        base = torch.arange(24.0, device=xpu).view(4, 6)
        seen, expected = view(base), view(torch.arange(24.0).view(4, 6))
        assert seen.untyped_storage().data_ptr() == base.untyped_storage().data_ptr()
        assert seen.stride() == expected.stride()
        assert torch.equal(seen.cpu(), expected)


def test_writing_to_a_view_writes_to_the_base(xpu: torch.device) -> None:
    base, expected = torch.zeros(4, 6, device=xpu), torch.zeros(4, 6)
    for tensor in (base, expected):
        tensor.t()[2:].mul_(0).add_(3)
        tensor[1].view(2, 3)[0] = 5
    assert torch.equal(base.cpu(), expected)


def test_an_op_that_returns_its_input(xpu: torch.device) -> None:
    tensor = torch.ones(3, device=xpu)
    assert tensor.contiguous() is tensor or tensor.contiguous().data_ptr() == (
        tensor.data_ptr()
    )
    assert tensor.add_(1) is tensor
    assert torch.add(tensor, tensor, out=tensor) is tensor
    assert tensor.tolist() == [4, 4, 4]


def test_out_is_resized(xpu: torch.device) -> None:
    source = torch.arange(20.0).view(4, 5)
    out = torch.empty(0, device=xpu)
    assert torch.mul(source.to(xpu), 2, out=out) is out
    assert torch.equal(out.cpu(), source * 2)


def test_out_in_a_part_of_a_storage_leaves_the_rest(xpu: torch.device) -> None:
    base = torch.full((30,), 7.0, device=xpu)
    address = base.data_ptr()
    torch.mul(torch.ones(4, 5, device=xpu), 2, out=base[:0])
    assert base.data_ptr() == address
    assert base.tolist() == [2.0] * 20 + [7.0] * 10


def test_out_keeps_its_strides(xpu: torch.device) -> None:
    source = torch.arange(20.0).view(4, 5)
    out = torch.empty(5, 4, device=xpu).t()
    torch.neg(source.to(xpu), out=out)
    assert out.stride() == (1, 4)
    assert torch.equal(out.cpu(), -source)


def test_resize_keeps_what_fits(xpu: torch.device) -> None:
    tensor = torch.arange(4.0, device=xpu)
    assert tensor.resize_(2, 4).shape == (2, 4)
    assert tensor[0].tolist() == [0, 1, 2, 3]
    assert tensor.resize_(2).tolist() == [0, 1]


def test_set_shares_another_storage(xpu: torch.device) -> None:
    source = torch.arange(6.0, device=xpu)
    target = torch.empty(0, device=xpu)
    target.set_(source.untyped_storage(), 2, (2, 2), (2, 1))
    assert target.tolist() == [[2, 3], [4, 5]]
    target.set_(source)
    assert target.data_ptr() == source.data_ptr()
    assert target.set_().shape == (0,)
    with pytest.raises(RuntimeError, match="different device"):
        target.set_(torch.ones(2).untyped_storage())


def test_saved_loaded_and_copied_deeply(xpu: torch.device) -> None:
    tensor = torch.arange(6.0, device=xpu).view(2, 3)[1:]
    file = io.BytesIO()
    torch.save(tensor, file)
    file.seek(0)
    for other in (torch.load(file), copy.deepcopy(tensor)):
        assert other.device == xpu
        assert torch.equal(other.cpu(), tensor.cpu())
        assert other.data_ptr() != tensor.data_ptr()


def test_indexing_reads_and_writes(xpu: torch.device) -> None:
    values = torch.arange(12.0).view(3, 4)
    tensor = values.to(xpu)
    rows, mask = torch.tensor([2, 0]), torch.tensor([True, False, True])
    for index in (rows, mask):
        for device in ("cpu", xpu):
            assert torch.equal(tensor[index.to(device)].cpu(), values[index])
    tensor[rows.to(xpu), 1] = 9
    values[rows, 1] = 9
    tensor[tensor > 8] = -1
    values[values > 8] = -1
    assert torch.equal(tensor.cpu(), values)


def test_an_xpu_tensor_prints(xpu: torch.device) -> None:
    text = repr(torch.tensor([1.5, float("nan")], device=xpu))
    assert text == "tensor([1.5000,    nan], device='xpu:0')"
