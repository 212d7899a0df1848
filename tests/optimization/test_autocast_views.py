"""In a block of autocast with a layout, programs see plain tensors."""

import copy
import gc
from collections.abc import Callable

import pytest
import torch
from autocast_networks import images, with_layout
from torch import Tensor, nn
from torch.nn import functional as F
from torch.testing import assert_close

from xpurt import _layouts


@pytest.fixture
def layer(device: str) -> nn.Module:
    return nn.Conv2d(3, 8, 3).to(device)


def test_a_view_shares_what_is_written(device: str, layer: nn.Module) -> None:
    with with_layout(device), torch.no_grad():
        y = layer(images(device=device))
        rows = y.view(2, -1)
        rows[0] = 7
        assert (y[0] == 7).all()
        y[1] = 3
        assert (rows[1] == 3).all()
        y.relu_()
        F.relu(y, inplace=True).add_(1)
        assert (rows[1] == 4).all()
    assert rows.data_ptr() == y.data_ptr()


def test_a_view_of_what_autograd_has_saved(device: str, layer: nn.Module) -> None:
    second = nn.Conv2d(8, 4, 3).to(device)
    x, grads = images(device=device), []
    for block in (torch.autocast(device, torch.bfloat16), with_layout(device)):
        layer.zero_grad()
        with block:
            y = layer(x).relu()
            total = second(y).float().sum() + y.view(2, -1).float().sum()
        total.backward()
        grads.append([p.grad for p in layer.parameters()])
    assert_close(grads[1], grads[0], rtol=0.05, atol=0.05)


def test_a_write_after_saving_is_found(device: str, layer: nn.Module) -> None:
    second = nn.Conv2d(8, 4, 3).to(device)
    with with_layout(device):
        y = layer(images(device=device)).relu()
        z = second(y)
        with torch.no_grad():
            y.view(2, -1)[0] = 7
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        z.float().sum().backward()


LOOKS: dict[str, Callable[[Tensor], object]] = {
    "view": lambda y: y.view(2, -1),
    "view_as": lambda y: y.view_as(torch.empty(16, y.shape[2], y.shape[3])),
    "flatten": lambda y: y.flatten(1),
    "permute": lambda y: y.permute(0, 2, 3, 1).stride(),
    "select": lambda y: y[:, 1].stride(),
    "unbind": lambda y: [each.stride() for each in y.unbind()],
    "chunk": lambda y: [each.stride() for each in y.chunk(2, 1)],
    "list": lambda y: y.tolist(),
    "numpy": lambda y: y.float().cpu().numpy().tolist(),
    "text": repr,
    "like": lambda y: torch.zeros_like(y).stride(),
    "overload": lambda y: torch.ops.aten.view.default(y, [2, -1]),
    "mean": lambda y: y.mean(0).view(-1),
    "stack": lambda y: torch.stack([y, y]).view(4, -1),
    "as_strided": lambda y: y.as_strided((3,), (1,)),
    "iteration": lambda y: [each.stride() for each in y],
    "named": lambda y: torch.permute(input=y, dims=(0, 2, 3, 1)).stride(),
    "requested format": lambda y: (
        y.float(memory_format=torch.channels_last).sqrt().stride()
    ),
    "kept ops": lambda y: F.pad(F.max_pool2d(y.relu() + 1, 2), (1, 1)).view(2, -1),
    "casts": lambda y: y.float().sqrt().nan_to_num().view(2, -1),
}


@pytest.mark.parametrize("look", LOOKS.values(), ids=LOOKS)
def test_what_the_program_sees(
    look: Callable[[Tensor], object], device: str, layer: nn.Module
) -> None:
    layer.requires_grad_(False)
    x = images(device=device)
    with torch.autocast(device, torch.bfloat16):
        expected = look(layer(x).abs())
    with with_layout(device):
        found = look(layer(x).abs())
    assert type(found) is type(expected)
    if isinstance(found, Tensor):
        assert_close(found, expected, check_stride=True)
    else:
        assert found == expected


def test_a_tensor_that_is_written_keeps_the_layout_of_the_program(
    device: str, layer: nn.Module
) -> None:
    last = torch.channels_last
    z = torch.ones(2, 8, 7, 6, device=device).to(memory_format=last)
    with with_layout(device), torch.no_grad():
        z.add_(layer(images(device=device)))
    assert z.is_contiguous(memory_format=last)


def test_random_numbers_do_not_depend_on_the_layout(
    device: str, layer: nn.Module
) -> None:
    found = []
    for block in (torch.autocast(device, torch.bfloat16), with_layout(device)):
        torch.manual_seed(0)
        with block:
            y = F.dropout(layer(images(device=device).fill_(1)), 0.5)
        found.append(y == 0)
    assert_close(found[0], found[1])


def test_dropout_keeps_the_layout_where_it_does_nothing() -> None:
    layer = nn.Conv2d(3, 8, 3)
    with with_layout("cpu"):
        y = layer(images())
        F.dropout(y, 0.5, False)
        assert _layouts.is_temporary(y)
        F.dropout(y, 0.5, True)
        assert not _layouts.is_temporary(y)


def test_what_the_program_holds_is_plain_after_the_block(
    device: str, layer: nn.Module
) -> None:
    with with_layout(device):
        held = {"y": [layer(images(device=device)).relu()]}
    assert held["y"][0].is_contiguous()
    held["y"][0].view(2, -1)


def test_what_autograd_alone_holds_keeps_the_layout() -> None:
    layer, second = nn.Conv2d(3, 8, 3), nn.Conv2d(8, 4, 3)
    with with_layout("cpu"):
        z = second(layer(images()).relu())
    saved = z.grad_fn._saved_input  # type: ignore[union-attr]
    assert saved.is_contiguous(memory_format=torch.channels_last)
    assert not saved.is_contiguous()
    assert z.is_contiguous()


def storage_of(y: Tensor) -> Tensor:
    return torch.empty(0, dtype=y.dtype, device=y.device).set_(y.untyped_storage())


SEEN: dict[str, Callable[[Tensor], object]] = {
    "data": lambda y: y.data,
    "storage": lambda y: y.untyped_storage(),
    "pointer": lambda y: y.data_ptr(),
    "another tensor": storage_of,
    "copy": lambda y: copy.deepcopy(y) if y.is_leaf else y.data_ptr(),
}


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("look", SEEN.values(), ids=SEEN)
def test_a_tensor_whose_memory_is_seen_keeps_it(
    look: Callable[[Tensor], object], training: bool, device: str, layer: nn.Module
) -> None:
    """A relu saves its result for the backward pass, by a tensor of its own."""
    with torch.set_grad_enabled(training):
        with with_layout(device):
            y = layer(images(device=device)).relu()
            seen = look(y)
            before = y.data_ptr()
            with pytest.raises(RuntimeError, match="view size is not compatible"):
                y.view(2, -1)
        assert y.data_ptr() == before
        assert y.is_contiguous(memory_format=torch.channels_last)
    del seen


def test_numpy_shares_the_memory() -> None:
    layer = nn.Conv2d(3, 8, 3).requires_grad_(False)
    with with_layout("cpu", torch.float32):
        y = layer(images())
        array = y.numpy()
    y.fill_(3)
    assert (array == 3).all()


def test_an_alias_that_is_gone_does_not_count(device: str, layer: nn.Module) -> None:
    with with_layout(device):
        y = layer(images(device=device)).relu()
        assert (y.data >= 0).all()
        y.view(2, -1)
    assert y.is_contiguous()


def test_a_backward_pass_within_the_block_frees_no_alias(
    device: str, layer: nn.Module
) -> None:
    with with_layout(device):
        y = layer(images(device=device)).relu()
        alias = y.data
        y.float().sum().backward()
        with pytest.raises(RuntimeError, match="view size is not compatible"):
            y.view(2, -1)
    alias.fill_(5)
    assert (y == 5).all()


def test_nothing_is_kept_alive() -> None:
    layer = nn.Conv2d(3, 8, 3)
    with with_layout("cpu"), torch.no_grad():
        y = layer(images())
        assert _layouts.count_temporaries() == 1
        del y
        gc.collect()
        assert _layouts.count_temporaries() == 0
