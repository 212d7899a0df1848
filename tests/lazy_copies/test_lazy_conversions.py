"""When a conversion is lazy, and when the copy is made after all."""

import gc
from collections.abc import Callable

import pytest
import torch
from own_process import output

import xpurt
from xpurt import _C

pytestmark = pytest.mark.usefixtures("lazily")

SIDES = ["cpu", "xpu"]


def other(side: str) -> str:
    return "xpu" if side == "cpu" else "cpu"


def address(tensor: torch.Tensor) -> int:
    return torch._C._data_address(tensor)


@pytest.fixture(params=SIDES)
def side(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def pair(side: str) -> tuple[torch.Tensor, torch.Tensor]:
    source = torch.arange(24.0, device=side).view(4, 6).clone()
    return source, source.to(other(side))


def test_nothing_is_lazy_unasked(side: str) -> None:
    with xpurt.lazy_copies(False):
        source, copy = pair(side)
    assert not _C.is_lazy(source)
    assert not _C.is_lazy(copy)


def test_both_read_the_same_memory(side: str) -> None:
    source, copy = pair(side)
    assert _C.is_lazy(source)
    assert _C.is_lazy(copy)
    assert copy.device.type == other(side)
    assert (copy + 1).tolist() == (source + 1).tolist()
    assert copy.sum().item() == source.sum().item()
    assert _C.is_lazy(source)
    assert _C.is_lazy(copy)


def test_a_write_is_seen_on_its_side_alone(side: str) -> None:
    for writes_to_the_copy in (False, True):
        source, copy = pair(side)
        written, left = (copy, source) if writes_to_the_copy else (source, copy)
        written.add_(1)
        assert not _C.is_lazy(written)
        torch.xpu.synchronize()
        assert left.tolist() == torch.arange(24.0).view(4, 6).tolist()
        assert written.tolist() == (torch.arange(24.0).view(4, 6) + 1).tolist()
        left.mul_(2)
        assert left.tolist() == (torch.arange(24.0).view(4, 6) * 2).tolist()


def test_there_and_back_is_the_same_memory(side: str) -> None:
    source, copy = pair(side)
    back = copy.to(side)
    back.add_(1)
    torch.xpu.synchronize()
    assert source.tolist() == copy.tolist() != back.tolist()


@pytest.mark.parametrize("policy", ["sycl", "native"])
def test_results_stay_when_the_source_is_gone(side: str, policy: str) -> None:
    before = _C.live_memory()
    with xpurt.kernel_policy(policy):
        source, copy = pair(side)
        product = copy * 2
        del source
        copy.add_(1)
        assert product.tolist() == (torch.arange(24.0).view(4, 6) * 2).tolist()
        assert copy.tolist() == (torch.arange(24.0).view(4, 6) + 1).tolist()
    del copy, product
    gc.collect()
    assert _C.live_memory() == before


def busy_with(copy: torch.Tensor) -> torch.Tensor:
    """A result that a queue computes from `copy`, in a while."""
    stream = torch.xpu.current_stream()
    with xpurt.kernel_policy("sycl"):
        _C._submit_sleep(stream.stream_id, stream.device_index, 0.2)
        return copy * 2


def test_the_last_owner_waits_for_queued_work_before_it_writes() -> None:
    source = torch.full((1 << 18,), 3.0)
    copy = source.to("xpu")
    result = busy_with(copy)
    del copy
    source.fill_(-1.0)  # in place: no other tensor has the memory
    assert result.cpu().unique().tolist() == [6.0]


def test_memory_is_freed_after_the_queued_work_that_reads_it() -> None:
    copy = torch.full((1 << 18,), 3.0).to("xpu")
    result = busy_with(copy)
    del copy
    rubbish = [torch.full((1 << 18,), -1.0) for _ in range(4)]
    assert result.cpu().unique().tolist() == [6.0]
    del rubbish


def test_a_first_write_on_xpu_waits_for_nothing_that_reads_elsewhere() -> None:
    source = torch.full((1 << 18,), 3.0)
    copy = source.to("xpu")
    result = busy_with(copy)
    copy.fill_(5.0)
    source.fill_(-1.0)
    assert result.cpu().unique().tolist() == [6.0]
    assert copy.cpu().unique().tolist() == [5.0]


def test_running_statistics_are_written_without_a_word(side: str) -> None:
    mean, variance = torch.zeros(3, device=side), torch.ones(3, device=side)
    copies = [mean.to(other(side)), variance.to(other(side))]
    source = torch.randn(8, 3, device=side)
    torch.nn.functional.batch_norm(source, mean, variance, training=True)
    torch.xpu.synchronize()
    assert mean.abs().sum().item() > 0
    assert [c.tolist() for c in copies] == [[0.0] * 3, [1.0] * 3]
    mean, variance = copies
    source = source.to(other(side)).unsqueeze(2)
    torch.nn.functional.instance_norm(source.repeat(1, 1, 4), mean, variance)
    torch.xpu.synchronize()
    assert mean.abs().sum().item() > 0


ESCAPES: dict[str, Callable[[torch.Tensor], object]] = {
    "data_ptr": lambda t: t.data_ptr(),
    "storage": lambda t: t.untyped_storage().data_ptr(),
    "share": xpurt.share,
    "dlpack": lambda t: t.__dlpack__(),
    "numpy": lambda t: t.numpy(),
    "usm": lambda t: t.__sycl_usm_array_interface__,
    "share_memory": lambda t: t.share_memory_(),
}
HERE_ALONE = {"numpy": "cpu", "usm": "xpu", "share_memory": "cpu"}


@pytest.mark.parametrize("way", ESCAPES)
def test_a_pointer_is_private(side: str, way: str) -> None:
    if HERE_ALONE.get(way, side) != side:
        pytest.skip(f"{way} is not for {side}")
    source, copy = pair(side)
    kept = ESCAPES[way](source)
    assert not _C.is_lazy(source)
    assert address(source) != address(copy)
    del kept


@pytest.mark.parametrize("way", ESCAPES)
def test_what_has_a_pointer_outside_is_copied(side: str, way: str) -> None:
    if HERE_ALONE.get(way, side) != side:
        pytest.skip(f"{way} is not for {side}")
    source = torch.arange(24.0, device=side)
    kept = ESCAPES[way](source)
    copy = source.to(other(side))
    assert not _C.is_lazy(copy)
    assert not _C.is_lazy(source)
    del kept


EAGER: dict[str, Callable[[str], torch.Tensor]] = {
    "a slice": lambda side: torch.zeros(10, device=side)[2:],
    "another dtype": lambda side: torch.zeros(10, device=side).view(torch.int32)[:5],
    "nothing": lambda side: torch.zeros(0, device=side),
    "expanded": lambda side: torch.zeros(1, device=side).expand(10),
    "a view of what lives": lambda side: KEPT.setdefault(
        side, torch.zeros(2, 3, device=side)
    ).view(6),
}
KEPT: dict[str, torch.Tensor] = {}


@pytest.mark.parametrize("case", EAGER)
def test_others_are_copied(side: str, case: str) -> None:
    source = EAGER[case](side)
    copy = source.to(other(side))
    KEPT.clear()
    assert not _C.is_lazy(copy)
    assert torch.equal(copy.cpu(), source.cpu())


def test_conversions_with_a_change_are_copied(side: str) -> None:
    source = torch.zeros(2, 3, 4, 5, device=side)
    assert not _C.is_lazy(source.to(other(side), torch.float64))
    channels_last = source.to(other(side), memory_format=torch.channels_last)
    assert not _C.is_lazy(channels_last)
    assert channels_last.is_contiguous(memory_format=torch.channels_last)


def test_memory_of_others_is_copied(tmp_path: object) -> None:
    import numpy as np

    pinned = torch.zeros(100).pin_memory()
    for source in (
        pinned,
        torch.from_numpy(np.zeros(100, dtype=np.float32)),
        torch.frombuffer(bytearray(400), dtype=torch.float32),
        torch.zeros(100).share_memory_(),
    ):
        assert not _C.is_lazy(source.to("xpu"))


def test_loaded_tensors_are_copied(tmp_path: object) -> None:
    file = f"{tmp_path}/saved.pt"
    torch.save(torch.arange(100.0), file)
    for mapped in (False, True):
        loaded = torch.load(file, mmap=mapped)
        copy = loaded.to("xpu").add_(1)
        loaded.add_(2)
        assert copy.tolist() == (torch.arange(100.0) + 1).tolist()


def test_order_of_dimensions_is_kept(side: str) -> None:
    source = torch.randn(2, 3, 4, device=side).permute(2, 0, 1).contiguous()
    source = source.permute(1, 2, 0)
    kept = source.stride()
    copy = source.to(other(side))
    assert copy.stride() == kept
    assert copy.tolist() == source.tolist()


def test_resizing_leaves_the_other_side_alone(side: str) -> None:
    source, copy = pair(side)
    source.resize_(8, 6).fill_(7)
    torch.xpu.synchronize()
    assert copy.tolist() == torch.arange(24.0).view(4, 6).tolist()


def test_gradients_pass_lazy_conversions(side: str) -> None:
    leaf = torch.arange(4.0, device=side, requires_grad=True)
    (leaf.to(other(side)) ** 2).sum().backward()
    assert leaf.grad is not None
    assert leaf.grad.device.type == side
    assert leaf.grad.tolist() == [0, 2, 4, 6]


def test_a_model_goes_there_and_trains() -> None:
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.BatchNorm1d(8))
    saved = {k: v.clone() for k, v in model.state_dict().items()}
    held = dict(model.state_dict())
    there = model.to("xpu")
    optimizer = torch.optim.AdamW(there.parameters())
    there(torch.randn(16, 4).to("xpu")).square().mean().backward()
    optimizer.step()
    torch.xpu.synchronize()
    for name, value in held.items():
        assert torch.equal(value, saved[name]), name
    assert not torch.equal(there[0].weight.cpu(), saved["0.weight"])


def test_memory_is_counted_where_it_is() -> None:
    before = torch.xpu.memory_allocated()
    source = torch.zeros(1 << 20)
    copy = source.to("xpu")
    assert torch.xpu.memory_allocated() == before
    assert _C.live_memory()[1] >= 4 << 20  # it holds the mapping
    copy.add_(1)
    assert torch.xpu.memory_allocated() == before + (4 << 20)
    back = copy.cpu()
    del copy
    assert torch.xpu.memory_allocated() == before + (4 << 20)
    back.add_(1)
    assert torch.xpu.memory_allocated() == before


def test_the_mapping_stays_while_a_copy_holds_memory() -> None:
    back = torch.zeros(100, device="xpu").cpu()
    with pytest.raises(xpurt.MappingError):
        xpurt.set_xpu_mapping("explicit")
    back.add_(1)
    xpurt.set_xpu_mapping("explicit")


def test_where_and_the_report() -> None:
    source = torch.zeros(1000)
    before = xpurt.op_report()
    copy = source.to("xpu")
    assert xpurt.where(copy) == xpurt.where(torch.zeros(9, device="xpu"))
    assert str(before) != str(xpurt.op_report())


def test_the_switch_of_the_environment() -> None:
    code = """
    import torch, xpurt
    from xpurt import _C
    xpurt.set_xpu_mapping("CPU")
    print(_C.is_lazy(torch.zeros(9).to("xpu")))
    with xpurt.lazy_copies(False):
        print(_C.is_lazy(torch.zeros(9).to("xpu")))
    """
    assert output(code, XPURT_LAZY_COPIES="1") == "True\nFalse"
    assert output(code) == "False\nFalse"


def test_a_pointer_that_was_taken_before_is_unknown() -> None:
    """Why this is not the default."""
    code = """
    import ctypes, torch, xpurt
    xpurt.set_xpu_mapping("CPU")
    source = torch.zeros(9)
    kept = source.data_ptr()
    with xpurt.lazy_copies():
        copy = source.to("xpu")
    ctypes.memset(kept, 1, 4)
    print(copy.count_nonzero().item())
    """
    assert output(code) == "1"


def test_threads_have_their_own_switch() -> None:
    from concurrent.futures import ThreadPoolExecutor

    def convert() -> bool:
        return _C.is_lazy(torch.zeros(9).to("xpu"))

    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(convert).result() is False
    assert convert()
