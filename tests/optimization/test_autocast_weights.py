"""Weights are converted once per version in blocks of autocast with a layout."""

import copy
import gc
import math
import pickle
from collections.abc import Iterator
from typing import Any
from unittest.mock import patch

import pytest
import torch
from autocast_networks import images, with_layout
from torch import Tensor, nn
from torch.testing import assert_close

import xpurt
from xpurt import _layouts
from xpurt.optimization import packed_weights
from xpurt.optimization.autocast.packed_convolution import SMALLEST


@pytest.fixture
def layer(device: str) -> nn.Conv2d:
    return nn.Conv2d(3, 8, 3).to(device)


@pytest.fixture
def conversions() -> Iterator[list[torch.Size]]:
    """The shapes of the weights that were converted, one for each time."""
    found: list[torch.Size] = []
    original = packed_weights._Packs.make

    def note(packs: packed_weights._Packs, weight: Tensor, *rest: Any) -> Tensor:
        found.append(weight.shape)
        made: Tensor = original(packs, weight, *rest)
        return made

    with patch.object(packed_weights._Packs, "make", note):
        yield found


def run(layer: nn.Module, x: Tensor, gradients: bool = False) -> Tensor:
    with torch.set_grad_enabled(gradients), with_layout(x.device.type):
        result: Tensor = layer(x)
    return result


def expected(layer: nn.Module, x: Tensor) -> Tensor:
    with torch.no_grad(), torch.autocast(x.device.type, torch.bfloat16):
        result: Tensor = layer(x)
    return result


def test_once_per_version(
    device: str, layer: nn.Conv2d, conversions: list[torch.Size]
) -> None:
    x = images(device=device)
    for _ in range(3):
        run(layer, x)
    assert conversions.count(layer.weight.shape) == 1
    with torch.no_grad():
        layer.weight.mul_(2)
    for _ in range(3):
        found = run(layer, x)
    assert conversions.count(layer.weight.shape) == 2
    assert_close(found.detach(), expected(layer, x), rtol=0.02, atol=0.02)


def test_a_trained_weight_is_converted_once_per_block(
    device: str, layer: nn.Conv2d, conversions: list[torch.Size]
) -> None:
    x = images(device=device)
    for _ in range(2):
        with torch.profiler.profile(record_shapes=True) as profile, with_layout(device):
            for _ in range(3):
                layer(x)
        copies = [
            each.input_shapes[0]
            for each in profile.events() or ()
            if each.name == "aten::_to_copy"
        ]
        assert copies.count(list(layer.weight.shape)) == 1
    assert conversions == []


def test_a_weight_whose_elements_share_memory_is_not_kept(
    device: str, layer: nn.Conv2d, conversions: list[torch.Size]
) -> None:
    with torch.no_grad():
        layer.weight = nn.Parameter(layer.weight[:, :1].expand_as(layer.weight), False)
    for _ in range(2):
        run(layer, images(device=device))
    assert conversions.count(layer.weight.shape) == 0


def test_linear_layers_too(device: str, conversions: list[torch.Size]) -> None:
    layer, x = nn.Linear(3, 5).to(device), torch.randn(2, 3, device=device)
    for _ in range(3):
        found = run(layer, x)
    assert sorted(conversions) == [(5,), (5, 3)]
    assert_close(found, expected(layer, x))


def write_by_optimizer(layer: nn.Conv2d) -> None:
    layer.weight.grad = torch.ones_like(layer.weight)
    torch.optim.SGD([layer.weight], lr=1.0).step()


def write_by_state(layer: nn.Conv2d) -> None:
    state = {name: value + 1 for name, value in layer.state_dict().items()}
    layer.load_state_dict(state)


def write_by_data(layer: nn.Conv2d) -> None:
    layer.weight.data.mul_(2)


def new_data(layer: nn.Conv2d) -> None:
    layer.weight.data = layer.weight.data * 2


def new_data_twice(layer: nn.Conv2d) -> None:
    """The second may get the memory of the first."""
    layer.weight.data = torch.zeros_like(layer.weight)
    layer.weight.data = torch.ones_like(layer.weight)


def new_data_with_another_element(layer: nn.Conv2d) -> None:
    """Which is not one of those that are compared."""
    data = layer.weight.data.clone()
    data[1, 1, 1, 1] = 100
    layer.weight.data = data


def new_order(layer: nn.Conv2d) -> None:
    layer.weight.data = layer.weight.data.transpose(2, 3)


def new_parameter(layer: nn.Conv2d) -> None:
    layer.weight = nn.Parameter(layer.weight.detach() + 1)


def one_element(layer: nn.Conv2d) -> None:
    with torch.no_grad():
        layer.weight[1, 1, 1, 1] = 100


@pytest.mark.parametrize(
    "write",
    [
        write_by_optimizer,
        write_by_state,
        write_by_data,
        new_data,
        new_data_twice,
        new_data_with_another_element,
        new_order,
        new_parameter,
        one_element,
    ],
)
@pytest.mark.parametrize("gradients", [False, True])
def test_a_written_weight_is_converted_again(
    write: object, gradients: bool, device: str, layer: nn.Conv2d
) -> None:
    x = images(device=device)
    before = run(layer, x, gradients)
    write(layer)  # type: ignore[operator]
    found = run(layer, x, gradients).detach()
    assert not torch.equal(found, before)
    assert_close(found, expected(layer, x), rtol=0.02, atol=0.02)


@pytest.mark.parametrize("write", [one_element, write_by_data, new_data])
@pytest.mark.parametrize("gradients", [False, True])
def test_a_write_within_the_block(
    write: object, gradients: bool, device: str, layer: nn.Conv2d
) -> None:
    x = images(device=device)
    with torch.set_grad_enabled(gradients), with_layout(device):
        layer(x)
        write(layer)  # type: ignore[operator]
        found = layer(x)
    assert_close(found.detach(), expected(layer, x), rtol=0.02, atol=0.02)


def test_an_element_that_is_not_compared_is_written_within_the_block(
    device: str,
) -> None:
    layer, x = nn.Conv2d(32, 64, 3).to(device), torch.randn(2, 32, 9, 8).to(device)
    compared = _layouts.sampled_places(layer.weight.numel())
    place = next(i for i in range(layer.weight.numel()) if i not in compared)
    with torch.no_grad(), with_layout(device):
        layer(x)
        layer.weight.data.view(-1)[place] = 100
        found = layer(x)
    assert_close(found, expected(layer, x), rtol=0.02, atol=0.02)


def all_but_the_centre(weight: Tensor) -> None:
    mask = torch.zeros_like(weight)
    mask[:, :, 1, 1] = 1
    weight.mul_(mask)


def an_output(weight: Tensor) -> None:
    weight[5].zero_()


def an_input(weight: Tensor) -> None:
    weight[:, 5].zero_()


def a_tap(weight: Tensor) -> None:
    weight[:, :, 2, 0].zero_()


def two_of_four(weight: Tensor) -> None:
    weight.view(-1, 4)[:, 2:].zero_()


def the_last_outputs(weight: Tensor) -> None:
    weight[-3:].neg_()


@pytest.mark.parametrize(
    "write",
    [
        all_but_the_centre,
        an_output,
        an_input,
        a_tap,
        two_of_four,
        the_last_outputs,
    ],
)
def test_a_part_is_written_through_data(write: object, device: str) -> None:
    """The parts that pruning writes, of a weight that is not compared as a whole."""
    layer, x = nn.Conv2d(32, 64, 3).to(device), torch.randn(2, 32, 9, 8).to(device)
    before = run(layer, x)
    write(layer.weight.data)  # type: ignore[operator]
    found = run(layer, x)
    assert not torch.equal(found, before)
    assert_close(found, expected(layer, x), rtol=0.02, atol=0.02)


def test_a_sample_is_aligned_with_no_dimension() -> None:
    sizes = 64, 32, 3, 3
    each = torch.tensor(_layouts.sampled_places(math.prod(sizes)))
    for size in reversed(sizes):
        counts = torch.bincount(each % size, minlength=size)
        # Far beyond 1024 draws of `size` values, of which each has as many on average.
        mean = 1024 / size
        assert (counts - mean).abs().max() < 6 * mean**0.5
        each = each // size


def test_a_sample_of_a_transposed_weight() -> None:
    weight = torch.zeros(70, 50).t()
    memory = weight.numpy()
    watched = _layouts.watched_weight(weight)
    _layouts.begin_block(None, False, False)
    _layouts.end_block()
    assert watched.is_unwritten(weight)
    memory[:, 40:] = 1
    _layouts.begin_block(None, False, False)
    _layouts.end_block()
    assert not watched.is_unwritten(weight)


def test_conversions_go_with_the_parameter(device: str, layer: nn.Conv2d) -> None:
    gc.collect()
    before = packed_weights.count()
    other = copy.deepcopy(layer)
    run(other, images(device=device))
    assert packed_weights.count() > before
    del other
    gc.collect()
    assert packed_weights.count() == before


def test_images_of_many_sizes_keep_few_conversions(cpu: torch.device) -> None:
    layer = nn.Conv2d(64, 64, 3).to(cpu)
    assert layer.weight.numel() >= SMALLEST
    for size in range(6, 20):
        x = torch.randn(1, 64, size, size, device=cpu)
        assert_close(run(layer, x), expected(layer, x), rtol=0.02, atol=0.02)
    _, packs = packed_weights._known[id(layer.weight)]
    assert packs is not None
    assert len(packs[1].by_use) == packed_weights.MOST


def test_without_a_cache(
    device: str, layer: nn.Conv2d, conversions: list[torch.Size]
) -> None:
    x, before = images(device=device), packed_weights.count()
    for gradients in (False, True):
        block = xpurt.autocast(
            device,
            torch.bfloat16,
            cache_enabled=False,
            layout=torch._mkldnn,  # type: ignore[attr-defined]
        )
        with torch.set_grad_enabled(gradients), block:
            found = layer(x)
        assert_close(found.detach(), expected(layer, x), rtol=0.02, atol=0.02)
    assert conversions == []
    assert packed_weights.count() == before


def test_a_weight_that_is_computed(device: str, layer: nn.Conv2d) -> None:
    nn.utils.parametrizations.weight_norm(layer)
    x, before = images(device=device), packed_weights.count()
    run(layer, x, gradients=True).float().sum().backward()
    assert layer.parametrizations.weight.original0.grad is not None  # type: ignore[union-attr]
    assert_close(run(layer, x), expected(layer, x), rtol=0.02, atol=0.02)
    assert packed_weights.count() <= before + 1  # that of the bias


def test_weights_of_inference_mode(device: str) -> None:
    with torch.inference_mode():
        layer, x = nn.Conv2d(3, 8, 3).to(device), images(device=device)
        run(layer, x)
        layer.weight.mul_(2)
        found = run(layer, x)
        assert_close(found, expected(layer, x), rtol=0.02, atol=0.02)


def test_the_second_derivative(layer: nn.Conv2d, device: str) -> None:
    grads = []
    for block in (torch.autocast(device, torch.bfloat16), with_layout(device)):
        with block:
            y = layer(images(device=device).fill_(0.5)).float().square().sum()
        (first,) = torch.autograd.grad(y, [layer.weight], create_graph=True)
        grads.append(torch.autograd.grad(first.square().sum(), [layer.weight])[0])
    assert_close(
        grads[1] / grads[0].abs().max(),
        grads[0] / grads[0].abs().max(),
        rtol=0.05,
        atol=0.02,
    )


def test_a_converted_layer_is_saved_as_before(layer: nn.Conv2d, device: str) -> None:
    size = len(pickle.dumps(layer))
    run(layer, images(device=device))
    assert len(pickle.dumps(layer)) == size
