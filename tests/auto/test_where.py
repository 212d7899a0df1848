"""`where()`: which physical devices hold a valid copy of a tensor."""

import pytest
import torch

import xpurt
from auto.choices import Choices


@pytest.fixture
def held(choices: Choices) -> object:
    by_filter = {d.filter_string: d.kind for d in xpurt.physical_devices()}
    return lambda tensor: sorted(by_filter[each] for each in xpurt.where(tensor))


def test_a_write_leaves_one_copy_and_a_read_makes_one(choices: Choices, held) -> None:
    x = torch.ones(8, device="xpu")
    assert held(x) == ["cpu"]
    choices.gpu()
    y = x * 2
    assert held(x) == ["cpu", "gpu"]
    assert held(y) == ["gpu"]
    assert y.cpu().tolist() == [2.0] * 8
    assert held(y) == ["cpu", "gpu"]
    choices.cpu()
    y.add_(1)
    assert held(y) == ["cpu"]
    choices.gpu()
    y.add_(1)
    assert held(y) == ["gpu"]
    assert y.cpu().tolist() == [4.0] * 8


def test_views_share_their_storage_s_copies(choices: Choices, held) -> None:
    x = torch.zeros(4, 4, device="xpu")
    choices.gpu()
    x[1:3].fill_(1)
    assert held(x) == held(x[0]) == ["gpu"]
    choices.cpu()
    x[:, 0].fill_(5)
    assert held(x) == ["cpu"]
    assert x.cpu().tolist() == [[5, 0, 0, 0], [5, 1, 1, 1], [5, 1, 1, 1], [5, 0, 0, 0]]


@pytest.mark.parametrize("way", ["share", "data_ptr", "storage", "dlpack", "to_dlpack"])
def test_who_knows_the_address_finds_valid_bytes_and_they_stay(
    choices: Choices, held, way: str
) -> None:
    choices.gpu()
    x = torch.zeros(4, device="xpu") + 3
    assert held(x) == ["gpu"]
    ways = {
        "share": lambda: xpurt.share(x),
        "data_ptr": x.data_ptr,
        "storage": x.untyped_storage().data_ptr,
        "dlpack": lambda: torch.from_dlpack(x),
        "to_dlpack": lambda: torch.utils.dlpack.to_dlpack(x),
    }
    kept = ways[way]()
    assert held(x) == ["cpu"]
    x += 1
    assert held(x) == ["cpu"]
    assert x.cpu().tolist() == [4.0] * 4
    del kept


def test_only_xpu_tensors_are_asked_about(choices: Choices) -> None:
    with pytest.raises(TypeError, match="cpu"):
        xpurt.where(torch.zeros(1))


def test_one_device_holds_everything_elsewhere() -> None:
    with xpurt.xpu_mapping("CPU"):
        (cpu,) = (d for d in xpurt.physical_devices() if d.kind == "cpu")
        assert xpurt.where(torch.zeros(1, device="xpu")) == (cpu.filter_string,)


def test_an_op_of_another_library_leaves_no_replica(choices: Choices, held) -> None:
    """It may write to what its schema calls an input."""
    library = torch.library.Library("xpurt_test_where", "DEF")
    library.define("add_one(Tensor x) -> ()")

    def add_one(x: torch.Tensor) -> None:
        x.add_(1)

    library.impl("add_one", add_one, "CPU")
    try:
        x = torch.ones(8, device="xpu")
        choices.gpu()
        assert (x * 2).tolist() == [2.0] * 8
        assert held(x) == ["cpu", "gpu"]
        torch.ops.xpurt_test_where.add_one(x)
        assert held(x) == ["cpu"]
        assert (x * 2).tolist() == [4.0] * 8
    finally:
        library._destroy()


def test_what_a_kernel_leaves_as_it_is_comes_to_the_device(choices: Choices) -> None:
    """found_inf is written for infinities alone: the value that it has on the CPU has
    to be there wherever the kernel runs."""
    gradient, one = torch.ones(4, device="xpu"), torch.ones((), device="xpu")
    found = torch.full((), 5.0, device="xpu")
    choices.gpu()
    torch._amp_foreach_non_finite_check_and_unscale_([gradient], found, one)
    assert found.item() == 5.0
