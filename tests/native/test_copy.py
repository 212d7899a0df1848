"""copy_ in all directions, with every layout and bit."""

import pytest
import torch
from own_process import output

VALUES = torch.arange(24, dtype=torch.float32).reshape(4, 6)


def test_there_and_back(xpu: torch.device) -> None:
    there = VALUES.to(xpu)
    assert there.device == xpu
    assert torch.equal(there.cpu(), VALUES)


@pytest.mark.parametrize(
    "view",
    [
        lambda t: t.t(),
        lambda t: t[:, ::2],
        lambda t: t[1:3, 2:],
        lambda t: t[0].expand(4, 6),
        lambda t: t[:0],
    ],
    ids=["transposed", "strided", "block", "expanded", "empty"],
)
def test_a_view_is_copied_from_either_side(view, xpu: torch.device) -> None:
    assert torch.equal(view(VALUES.to(xpu)).cpu(), view(VALUES))
    assert torch.equal(view(VALUES).to(xpu).cpu(), view(VALUES))


def test_a_copy_into_a_strided_view_leaves_the_rest(xpu: torch.device) -> None:
    for source_device in ("cpu", xpu):
        target, expected = torch.zeros(4, 6, device=xpu), torch.zeros(4, 6)
        target[:, 1::2].copy_(VALUES[:, ::2].to(source_device))
        expected[:, 1::2].copy_(VALUES[:, ::2])
        assert torch.equal(target.cpu(), expected)


def test_a_cpu_view_is_filled_from_xpu(xpu: torch.device) -> None:
    target = torch.zeros(4, 12)
    target[:, ::2].copy_(VALUES.to(xpu))
    assert torch.equal(target[:, ::2], VALUES)
    assert torch.equal(target[:, 1::2], torch.zeros(4, 6))


@pytest.mark.parametrize(
    "dtype", [torch.float16, torch.int64, torch.bool, torch.complex64]
)
def test_a_copy_converts(dtype: torch.dtype, xpu: torch.device) -> None:
    expected = VALUES.to(dtype)
    assert torch.equal(VALUES.to(xpu).to(dtype).cpu(), expected)
    assert torch.equal(VALUES.to(xpu, dtype).cpu(), expected)
    assert torch.equal(VALUES.to(xpu).to("cpu", dtype), expected)


def test_a_smaller_source_is_broadcast(xpu: torch.device) -> None:
    for source in (VALUES[0], VALUES[0].to(xpu)):
        target = torch.empty(4, 6, device=xpu)
        assert target.copy_(source) is target
        assert torch.equal(target.cpu(), VALUES[0].expand(4, 6))


def test_conjugate_and_negative_bits_are_resolved(xpu: torch.device) -> None:
    source = torch.tensor([1 + 2j, 3 - 4j])
    there = source.to(xpu)
    assert torch.equal(there.conj().cpu().resolve_conj(), source.conj().resolve_conj())
    assert torch.equal(there.conj().imag.cpu(), source.conj().imag.resolve_neg())
    assert torch.equal(
        torch.empty_like(there).copy_(source.conj()).cpu(), source.conj().resolve_conj()
    )
    assert torch.equal(
        torch.empty_like(there).copy_(there.conj()).cpu(), source.conj().resolve_conj()
    )


def test_a_tensor_becomes_its_own_conjugate(xpu: torch.device) -> None:
    """Both are the same bytes, and a copy is needed nevertheless."""
    source = torch.tensor([1 + 2j, 3 - 4j])
    there = source.to(xpu)
    assert torch.equal(there.copy_(there.conj()).cpu(), source.conj().resolve_conj())
    assert torch.equal(there.copy_(there).cpu(), source.conj().resolve_conj())
    part = source.real.to(xpu)
    assert torch.equal(part.copy_(torch._neg_view(part)).cpu(), -source.real)


def test_overlapping_memory_is_refused(xpu: torch.device) -> None:
    flat = VALUES.to(xpu).view(-1)
    with pytest.raises(RuntimeError, match="single memory location"):
        flat[1:].copy_(flat[:-1])


def test_copy_on_write_clones_stay_isolated(xpu: torch.device) -> None:
    source = VALUES.to(xpu)
    clone = torch._lazy_clone(source)
    clone.add_(1)
    assert torch.equal(source.cpu(), VALUES)
    assert torch.equal(clone.cpu(), VALUES + 1)


def test_item_and_tolist(xpu: torch.device) -> None:
    assert torch.tensor(2.5, device=xpu).item() == 2.5
    assert torch.tensor([[1, 2], [3, 4]], device=xpu)[:, 1].tolist() == [2, 4]


def test_a_copy_into_a_lazy_clone_stays_isolated(xpu: torch.device) -> None:
    source = VALUES.to(xpu)
    clone = torch._lazy_clone(source)
    clone.copy_(torch.ones(4, 6, device=xpu))
    assert torch.equal(source.cpu(), VALUES)
    assert torch.equal(clone.cpu(), torch.ones(4, 6))


def test_large_copies_take_pytorch_s_threads() -> None:
    code = """
    import os, torch, xpurt
    torch.set_num_threads(2)
    there = torch.empty(1 << 20, device="xpu")
    def threads():
        return len(os.listdir("/proc/self/task"))
    before = threads()
    there.cpu()
    print(threads() - before)
    """
    assert output(code) == "1"
