"""Ops of other libraries, of C++ and of TorchScript in blocks of autocast with a layout."""

from collections.abc import Iterator

import pytest
import torch
from autocast_networks import images, with_layout
from torch import Tensor, nn
from torch.testing import assert_close

import xpurt
from xpurt import _layouts
from xpurt.optimization.autocast import open_block

open_block.register()
Seen = list[tuple[torch.dtype, tuple[int, ...]]]


@pytest.fixture
def layer(device: str) -> nn.Module:
    return nn.Conv2d(3, 8, 3).to(device)


@pytest.fixture
def library() -> Iterator[torch.library.Library]:
    with torch.library._scoped_library("xpurt_test_layouts", "FRAGMENT") as made:
        yield made


def define(
    library: torch.library.Library, name: str, seen: Seen
) -> torch._ops.OpOverload:
    library.define(f"{name}(Tensor images, Tensor scale) -> Tensor")

    def run(images: Tensor, scale: Tensor) -> Tensor:
        seen.extend((each.dtype, each.stride()) for each in (images, scale))
        return images * scale.to(images.dtype)

    library.impl(name, run, "CompositeExplicitAutograd")
    op: torch._ops.OpOverload = getattr(torch.ops.xpurt_test_layouts, name).default
    return op


def test_an_op_of_another_library_gets_plain_tensors(
    library: torch.library.Library, device: str, layer: nn.Module
) -> None:
    seen: Seen = []
    op = define(library, "unregistered", seen)
    with with_layout(device):
        y = layer(images(device=device))
        assert _layouts.is_temporary(y)
        z = op(y, torch.ones(1, device=device))
    assert seen[0] == (torch.bfloat16, (336, 42, 6, 1))
    assert_close(z, y)


def test_an_op_of_another_library_gets_a_copy_of_what_is_seen(
    library: torch.library.Library, device: str, layer: nn.Module
) -> None:
    seen: Seen = []
    op = define(library, "copied", seen)
    with torch.no_grad(), with_layout(device):
        y = layer(images(device=device))
        pointer = y.data_ptr()
        op(y, torch.ones(1, device=device))
    assert seen[0][1] == (336, 42, 6, 1)
    assert y.data_ptr() == pointer
    assert y.is_contiguous(memory_format=torch.channels_last)


def test_each_operand_of_an_op_is_plain(
    library: torch.library.Library, device: str, layer: nn.Module
) -> None:
    """A tensor whose memory is seen is given twice; and one is cast before."""
    seen: Seen = []
    twice, cast = (
        define(library, f"{each}_{device}", seen) for each in ("two", "cast")
    )
    name = f"xpurt_test_layouts::cast_{device}"
    xpurt.autocast.register_op(name, dtypes={"images": torch.float32})
    with torch.no_grad(), with_layout(device):
        y = layer(images(device=device))
        cast(y, torch.ones(1, device=device))
        y = layer(images(device=device))
        y.data_ptr()
        twice(y, y)
    plain = (336, 42, 6, 1)
    assert seen[0] == (torch.float32, plain)
    assert [strides for _, strides in seen[2:]] == [plain, plain]


def test_a_registered_op_gets_what_it_asks_for(
    library: torch.library.Library, device: str
) -> None:
    seen: Seen = []
    op = define(library, f"registered_{device}", seen)
    xpurt.autocast.register_op(
        f"xpurt_test_layouts::registered_{device}",
        dtypes={"images": "block", "scale": torch.float32},
        layouts={"images": torch._mkldnn},  # type: ignore[attr-defined]
    )
    x = images(device=device)
    scale = torch.ones(1, dtype=torch.float16, device=device)
    with with_layout(device):
        y = op(x, scale)
        assert _layouts.is_temporary(y)
        rows = y.view(2, -1)
    assert seen[:2] == [
        (torch.bfloat16, (216, 1, 24, 3)),
        (torch.float32, (1,)),
    ]
    assert_close(rows, x.bfloat16().view(2, -1))
    del seen[:]
    with xpurt.autocast(device, torch.float32, layout=torch._mkldnn):  # type: ignore[attr-defined]
        op(x, scale)
    with torch.autocast(device, torch.bfloat16):
        op(x, scale)
    assert [dtype for dtype, _ in seen[::2]] == [torch.float32] * 2
    assert [strides[1] for _, strides in seen[::2]] == [1, 72]


def test_wrong_registrations(library: torch.library.Library) -> None:
    define(library, "wrong", [])
    register, name = xpurt.autocast.register_op, "xpurt_test_layouts::wrong"
    for arguments, message in (
        ({"op": "xpurt_test_layouts::missing"}, "Define it before"),
        ({"op": name, "dtypes": {"image": torch.half}}, 'asked for by "image"'),
        ({"op": name, "dtypes": {"images": "half"}}, "found 'half'"),
        (
            {"op": name, "layouts": {"images": torch.sparse_coo}},
            "found torch.sparse_coo",
        ),
    ):
        with pytest.raises(ValueError, match=message):
            register(**arguments)  # type: ignore[arg-type]
    register(name, dtypes={"images": "block"})
    with pytest.raises(ValueError, match="already"):
        register(name)


def test_torchscript(device: str, layer: nn.Module) -> None:
    @torch.jit.script
    def rows(y: Tensor) -> Tensor:
        return torch.relu(y).view(y.size(0), -1)

    with torch.autocast(device, torch.bfloat16):
        expected = rows(layer(images(device=device).fill_(0.5)))
    with with_layout(device):
        found = rows(layer(images(device=device).fill_(0.5)))
    assert_close(found, expected, rtol=0.02, atol=0.02)


def test_modules_of_cpp(device: str, layer: nn.Module) -> None:
    """An LSTM and an encoder layer are one op each, which calls others."""
    lstm = nn.LSTM(8, 5, batch_first=True).to(device)
    results = []
    for block in (torch.autocast(device, torch.bfloat16), with_layout(device)):
        with torch.no_grad(), block:
            y = layer(images(device=device).fill_(0.5))
            results.append(lstm(y.flatten(2).transpose(1, 2))[0].float())
    assert_close(results[1], results[0], rtol=0.02, atol=0.02)


def test_a_backward_pass_in_the_block(device: str, layer: nn.Module) -> None:
    second, grads = nn.Conv2d(8, 4, 3).to(device), []
    for block in (torch.autocast(device, torch.bfloat16), with_layout(device)):
        layer.zero_grad()
        with block:
            y = second(layer(images(device=device).fill_(0.5)).relu())
            y.float().square().sum().backward()
        assert layer.weight.grad is not None
        grads.append(layer.weight.grad)
    assert grads[1].is_contiguous()
    assert_close(grads[1], grads[0], rtol=0.05, atol=0.05)
