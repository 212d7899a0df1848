"""Ops that take a device: for every layout their results are on that device."""

from collections.abc import Callable, Iterator

import pytest
import torch
from device_calls import (
    COMPRESSED,
    COO,
    DENSE,
    LAYOUTS,
    MADE,
    NOT_CALLED,
    OPS,
    PLAIN_ARGUMENTS,
    UNTOLD,
    VALUES,
    call,
    takes_layout,
)

import xpurt

pytestmark = pytest.mark.filterwarnings("ignore")


def attempt(function: Callable[[], torch.Tensor]) -> torch.Tensor | Exception:
    try:
        return function()
    except Exception as error:
        return error


def values_of(tensor: torch.Tensor) -> list[torch.Tensor]:
    if tensor.is_nested:
        return [part.detach() for part in tensor.unbind()]
    if tensor.is_quantized:
        return [tensor.int_repr(), tensor.dequantize()]
    return [tensor if tensor.layout == torch.strided else tensor.to_dense()]


def faults(
    name: str, of: torch.Tensor, on_cpu: torch.Tensor, asked: torch.device
) -> Iterator[str]:
    """The faults of the op on `of`, compared with the same call on a CPU tensor."""
    where = f"{name} of {of.device} for {asked}"
    found = attempt(lambda: call(name, of, asked))
    like = torch.device("meta" if asked.type == "meta" else "cpu")
    expected = attempt(lambda: call(name, on_cpu, like))
    if isinstance(found, Exception):
        if not isinstance(expected, Exception):
            yield f"{where}: {found}"
        return
    if found.device != asked:
        yield f"{where}: the result is on {found.device}"
    if isinstance(expected, Exception):
        return
    for what in ("layout", "dtype", "is_quantized", "is_nested"):
        if getattr(found, what) != getattr(expected, what):
            yield f"{where}: {what} {getattr(found, what)}"
    if not found.is_nested and found.shape != expected.shape:
        yield f"{where}: {found.shape}"
    if asked.type == "meta" or any(word in name for word in UNTOLD):
        return
    for one, other in zip(values_of(found), values_of(expected), strict=True):
        if not torch.equal(one.cpu().resolve_conj(), other.resolve_conj()):
            yield f"{where}: {one} is not {other}"


def asked_of(source: torch.device) -> list[torch.device]:
    """The devices to request for the result: other devices, and the tensor's own."""
    count = torch.xpu.device_count()
    others = [torch.device("xpu", i) for i in range(count)]
    if source.type == "cpu":
        return others
    return [torch.device("cpu"), torch.device("meta"), *others]


def test_every_op_that_takes_a_device_is_called_or_has_a_reason() -> None:
    assert OPS.keys() >= NOT_CALLED.keys() | MADE.keys()
    assert len(OPS) > 100
    for name, schema in OPS.items():
        if name in NOT_CALLED or name in MADE:
            continue
        for argument in schema.arguments:
            if argument.has_default_value() or "Tensor" in str(argument.type):
                continue
            known = PLAIN_ARGUMENTS.keys() | {"device", "dtype"}
            assert argument.name in known or argument.kwarg_only, (name, argument.name)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_results_are_where_they_are_asked(layout: str, xpu: torch.device) -> None:
    on_cpu = LAYOUTS[layout]()
    wrong = []
    for source in (xpu, torch.device("cpu")):
        of = on_cpu.to(source)
        assert of.device == source
        for name in OPS:
            if name not in NOT_CALLED and takes_layout(name):
                for asked in asked_of(source):
                    wrong += faults(name, of, on_cpu, asked)
    assert not wrong, "\n".join(wrong)


def test_what_is_made_of_nothing(xpu: torch.device) -> None:
    on_cpu = torch.ones(1)
    wrong = []
    for source in (xpu, torch.device("cpu")):
        of = on_cpu.to(source)
        for name in OPS:
            if name not in NOT_CALLED and not takes_layout(name):
                for asked in asked_of(source):
                    wrong += faults(name, of, on_cpu, asked)
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_conversions(layout: str, xpu: torch.device) -> None:
    on_cpu = LAYOUTS[layout]()
    of = on_cpu.to(xpu)
    for back in (of.cpu(), of.to("cpu"), of.to(on_cpu), of.to("cpu", copy=True)):
        assert (back.device.type, back.layout) == ("cpu", on_cpu.layout)
        assert back.is_quantized == on_cpu.is_quantized
        for one, other in zip(values_of(back), values_of(on_cpu), strict=True):
            assert torch.equal(one, other)
    assert of.xpu().device == of.to("xpu").device == xpu
    for index in range(torch.xpu.device_count()):
        moved = of.to(f"xpu:{index}")
        assert moved.device == torch.device("xpu", index)
        for one, other in zip(values_of(moved), values_of(on_cpu), strict=True):
            assert torch.equal(one.cpu(), other)


@pytest.mark.parametrize("layout", ["nested", "per_tensor", "per_channel"])
def test_a_cpu_result_has_memory_of_its_own(layout: str, xpu: torch.device) -> None:
    of = LAYOUTS[layout]().to(xpu)
    before = [part.cpu() for part in values_of(of)]
    copy = of.cpu()
    assert copy.untyped_storage().device.type == "cpu"
    copy.untyped_storage().fill_(0)
    for one, other in zip(values_of(of), before, strict=True):
        assert torch.equal(one.cpu(), other)


def test_a_device_of_another_library_s_op(xpu: torch.device) -> None:
    library = torch.library.Library("xpurt_test_devices", "DEF")
    library.define("move(Tensor(a) x, Device device) -> Tensor(a)")
    library.impl("move", lambda x, device: x.to(device), "CPU")
    try:
        of = torch.ones(3, device=xpu)
        moved = torch.ops.xpurt_test_devices.move(of, torch.device("cpu"))
        assert moved.device.type == "cpu"
        moved.add_(1)
        assert of.tolist() == [1, 1, 1]
        assert torch.ops.xpurt_test_devices.move(of, xpu).device == xpu
    finally:
        library._destroy()


@pytest.mark.parametrize("kind", ["coo", *COMPRESSED])
def test_sparse_tensors_from_parts_elsewhere(kind: str, xpu: torch.device) -> None:
    *parts, whole = (COO, VALUES, (2, 3)) if kind == "coo" else COMPRESSED[kind]
    make = getattr(torch, f"sparse_{kind}_tensor")
    expected = make(*parts, whole).to_dense()
    for source, asked in ((xpu, torch.device("cpu")), (torch.device("cpu"), xpu)):
        made = make(*(part.to(source) for part in parts), whole, device=asked)
        assert made.device == asked
        assert torch.equal(made.to_dense().cpu(), expected)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_pinning(layout: str, xpu: torch.device) -> None:
    of = LAYOUTS[layout]().to(xpu)
    assert of.is_pinned() is False
    with pytest.raises(RuntimeError, match="cannot pin"):
        of.pin_memory()


def test_no_mkldnn_tensor_comes_of_an_xpu_one(xpu: torch.device) -> None:
    with pytest.raises(NotImplementedError, match=r"no mkldnn layout.*cpu\(\)"):
        DENSE.to(xpu).to_mkldnn()
    with pytest.raises(NotImplementedError, match="mkldnn"):
        DENSE.to_mkldnn().to(xpu)
    with pytest.raises(NotImplementedError, match="mkldnn"):
        torch.ops.mkldnn._reorder_linear_weight(DENSE.to(xpu))


def test_from_file(xpu: torch.device, tmp_path) -> None:
    file = tmp_path / "bytes"
    DENSE.numpy().tofile(file)
    for shared in (False, None):
        made = torch.ops.aten.from_file(str(file), shared, 24, device=xpu)
        assert made.device == xpu
        assert torch.equal(made.cpu(), DENSE.flatten())
    with pytest.raises(NotImplementedError, match="shared=False"):
        torch.from_file(str(file), shared=True, size=24, device=xpu)


@pytest.mark.mappings("explicit")
def test_the_current_device_is_meant_without_an_index(xpu: torch.device) -> None:
    if torch.xpu.device_count() < 2:
        pytest.skip("one ordinal")
    of = LAYOUTS["per_tensor"]().to("xpu:1")
    with torch.xpu.device(0):
        assert torch.empty_like(of, device="xpu").device == torch.device("xpu:0")
    assert torch.empty_like(of).device == torch.device("xpu:1")
    assert xpurt.get_xpu_mapping().startswith("explicit")
