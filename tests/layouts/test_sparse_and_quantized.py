"""Sparse and quantized tensors: every op that the CPU has a kernel for."""

import io
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from layout_calls import call, differences, ops_of, plain
from sparse_samples import (
    LAYOUTS,
    quantized,
    quantized_tensors,
    sparse,
    sparse_tensors,
)

# Without numbers of their own: what they hold is arbitrary.
UNFILLED = {
    "aten::empty.memory_format", "aten::empty_like", "aten::resize_",
    "aten::empty_quantized",
}  # fmt: skip
# The CPU's kernels return another tensor and leave `out` as it was.
OUT_IGNORED = {"aten::hardtanh.out", "aten::mean.out", "aten::std.correction_out"}
# Only for memory of the host: tests/native/test_asked_devices.py.
PINNED = {"aten::_pin_memory"}
# Numbers of the CPU's generator there.
DRAWN = {"aten::normal_"}
# With a bad size or result these write past their memory, on the CPU as well.
UNCHECKED = {
    "aten::_adaptive_avg_pool3d", "aten::adaptive_avg_pool3d.out", "aten::as_strided",
    "aten::empty_strided", "aten::set_.source_Storage_storage_offset",
}  # fmt: skip


@pytest.fixture(autouse=True)
def _no_beta_warnings() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def variants(key: str, unwanted: set[str]) -> list[tuple[str, dict[str, Any]]]:
    """Each op, and each that can keep dimensions once more with them kept."""
    made: list[tuple[str, dict[str, Any]]] = []
    for name in ops_of(key):
        if name in unwanted:
            continue
        made.append((name, {}))
        full, _, overload = name.removeprefix("aten::").partition(".")
        schema = getattr(getattr(torch.ops.aten, full), overload or "default")._schema
        if any(each.name == "keepdim" for each in schema.arguments):
            made.append((name, {"keepdim": True}))
    return made


def compared(
    key: str,
    unwanted: set[str],
    tensors: Callable[[torch.device], Callable[[str], torch.Tensor]],
    xpu: torch.device,
) -> tuple[dict[str, str], list[str]]:
    named = {
        f"{name}{changes or ''}": (name, changes)
        for name, changes in variants(key, unwanted)
    }

    def run(label: str, device: torch.device) -> Any:
        name, changes = named[label]
        return call(name, tensors(device), **changes)

    return differences(list(named), run, xpu)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_sparse(layout: str, xpu: torch.device) -> None:
    key = "SparseCPU" if layout == "coo" else "SparseCsrCPU"
    wrong, computed = compared(
        key,
        UNFILLED | DRAWN | PINNED,
        lambda device: sparse_tensors(layout, lambda tensor: tensor.to(device)),
        xpu,
    )
    assert wrong == {}
    assert len(computed) > 70


@pytest.mark.parametrize("shape", [(4, 4), (2, 4, 8), (2, 4, 4, 4), (2, 2, 4, 4, 4)])
def test_quantized(shape: tuple[int, ...], xpu: torch.device) -> None:
    wrong, computed = compared(
        "QuantizedCPU",
        UNFILLED | UNCHECKED | OUT_IGNORED,
        lambda device: quantized_tensors(lambda tensor: tensor.to(device), shape),
        xpu,
    )
    assert wrong == {}
    assert len(computed) > 60


@pytest.mark.parametrize("name", sorted(OUT_IGNORED))
def test_a_result_that_is_not_written_is_refused(name: str, xpu: torch.device) -> None:
    tensors = quantized_tensors(lambda tensor: tensor.to(xpu), (4, 4))
    with pytest.raises(NotImplementedError, match="without out="):
        call(name, tensors)


def per_channel(xpu: torch.device | str) -> torch.Tensor:
    scales = torch.tensor([0.1, 0.2, 0.3, 0.4], device=xpu)
    points = torch.tensor([0, 1, 2, 3], device=xpu)
    source = torch.arange(16.0, device=xpu).reshape(4, 4) / 8
    return torch.quantize_per_channel(source, scales, points, 0, torch.qint8)


Quantized = Callable[[torch.device | str], torch.Tensor]
KINDS: dict[str, Quantized] = {
    "tensor": lambda device: quantized(lambda each: each.to(device), (4, 4)),
    "channel": per_channel,
}
PER_CHANNEL = {
    "dequantize": lambda q: q.dequantize(),
    "int_repr": lambda q: q.int_repr(),
    "clone": lambda q: q.clone(),
    "contiguous": lambda q: q.contiguous(),
    "equal": lambda q: torch.equal(q, q.clone()),
    "select": lambda q: q[1].dequantize(),
    "scales": lambda q: (q.q_per_channel_scales(), q.q_per_channel_zero_points()),
    "axis": lambda q: q.q_per_channel_axis(),
    "copy": lambda q: q.clone().copy_(q),
    "reshape": lambda q: q.reshape(4, 4),
    "view": lambda q: q.view(4, 4),
    "transpose": lambda q: q.t(),
    "narrow": lambda q: q.narrow(1, 0, 2),
    "cat": lambda q: torch.cat([q, q]),
    "stack": lambda q: torch.stack([q, q]),
}


@pytest.mark.parametrize("kind", KINDS)
def test_uses(kind: str, xpu: torch.device) -> None:
    wrong, computed = differences(
        list(PER_CHANNEL),
        lambda name, device: PER_CHANNEL[name](KINDS[kind](device)),
        xpu,
    )
    assert wrong == {}
    assert len(computed) >= 8


MADE = {
    **{f"quantized_{kind}": made for kind, made in KINDS.items()},
    **{
        f"sparse_{layout}": lambda device, layout=layout: sparse(
            layout, lambda each: each.to(device)
        )
        for layout in LAYOUTS
    },
    "nested": lambda device: torch.nested.nested_tensor(
        [torch.arange(6.0).reshape(2, 3), torch.ones(4, 3)], device=device
    ),
}


@pytest.mark.parametrize("made", MADE)
def test_saving_and_loading(made: str, xpu: torch.device) -> None:
    tensor, expected = MADE[made](xpu), MADE[made]("cpu")
    file = io.BytesIO()
    try:
        torch.save(expected, io.BytesIO())
    except Exception as error:
        with pytest.raises(type(error)):
            torch.save(tensor, file)
        return
    torch.save(tensor, file)
    file.seek(0)
    loaded = torch.load(file, weights_only=False)
    assert loaded.device == xpu
    for found, wanted in zip(plain(loaded), plain(expected), strict=True):
        if isinstance(wanted, torch.Tensor):
            assert torch.equal(found, wanted)
        else:
            assert found == wanted
