"""PyTorch's meta functions are called once per op for the results' sizes and dtypes."""

import itertools
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

import pytest
import torch
import torch.nn.functional as F
from own_process import output

import xpurt
from xpurt.kernels.kinds.custom_kernel import CustomKernel
from xpurt.kernels.kinds.decomposed import Decomposed
from xpurt.kernels.rows.table import ROWS, AnyRow


def python_files(call) -> set[str]:
    """The files whose Python code runs within the call."""
    files = set()

    def see(frame: FrameType, event: str, argument: object) -> None:
        files.add(frame.f_code.co_filename)

    sys.setprofile(see)
    try:
        call()
    finally:
        sys.setprofile(None)
    return files


@pytest.fixture
def sycl():
    with xpurt.kernel_policy("sycl"):
        yield


@pytest.mark.usefixtures("sycl")
def test_they_are_asked_for_once(xpu: torch.device) -> None:
    x = torch.randn(3, 5, 7, device=xpu)

    def cumsum() -> None:
        x.cumsum(1)

    cumsum()
    assert python_files(cumsum) <= {__file__}


@pytest.mark.usefixtures("sycl")
def test_calls_that_differ_are_not_taken_for_each_other(xpu: torch.device) -> None:
    x = torch.arange(24.0).view(2, 3, 4)

    def both(call):
        return call(x.to(xpu)).cpu(), call(x)

    calls = [
        *(lambda t, d=d: t.cumsum(d) for d in (0, 1, 2)),
        *(lambda t, d=d: t.cumsum(0, dtype=d) for d in (torch.float64, torch.int32)),
        *(lambda t, s=s: F.pad(t, (s, 1), "reflect") for s in (1, 2)),
        *(lambda t, s=s: torch.arange(s, 4, device=t.device) for s in (1, 1.0, True)),
        lambda t: t.transpose(0, 1).cumsum(1),
        lambda t: t[:, :2].cumsum(1),
        lambda t: t.int().cumsum(1),
    ]
    for call in [*calls, *reversed(calls)]:
        ours, theirs = both(call)
        assert ours.dtype == theirs.dtype
        assert torch.equal(ours, theirs)


@pytest.mark.usefixtures("sycl")
def test_the_default_dtype_counts(xpu: torch.device) -> None:
    assert torch.arange(2.0, device=xpu).dtype == torch.float32
    torch.set_default_dtype(torch.bfloat16)
    try:
        assert torch.arange(2.0, device=xpu).dtype == torch.bfloat16
    finally:
        torch.set_default_dtype(torch.float32)


@pytest.mark.usefixtures("sycl")
def test_layer_norm_takes_the_types_that_the_cpu_takes(xpu: torch.device) -> None:
    floats = (torch.bfloat16, torch.float16, torch.float32, torch.float64)

    def told(device: torch.device, of_input: torch.dtype, of_weight: torch.dtype):
        x = torch.ones(4, 8, dtype=of_input, device=device)
        weight = torch.ones(8, dtype=of_weight, device=device)
        try:
            results = torch.native_layer_norm(x, [8], weight, None, 1e-5)
        except RuntimeError as error:
            return str(error)
        return [each.dtype for each in results]

    for each in itertools.product(floats, floats):
        assert told(xpu, *each) == told(torch.device("cpu"), *each), each


def structured_overloads(row: AnyRow) -> Iterator[str]:
    """The overloads of a row's op, and of its in-place form, whose CPU kernels PyTorch
    makes of a meta function in C++. Those for out= are left out."""
    for name in (row.aten, f"{row.aten}_"):
        packet = getattr(torch.ops.aten, name, None)
        for overload in packet.overloads() if packet else ():
            if row.overloads and overload not in row.overloads:
                continue
            op = getattr(packet, overload)
            kernels = torch._C._dispatch_dump(op.name())
            written_out = any(each.is_out for each in op._schema.arguments)
            structured = "CompositeExplicitAutogradNonFunctional" in kernels
            if structured and "RegisterMeta" in kernels and not written_out:
                yield name if overload == "default" else f"{name}_{overload}"


def test_all_meta_functions_in_c_are_listed() -> None:
    """Those of pointwise rows and reductions, which check as PyTorch's iterators do,
    are not needed."""
    source = Path(xpurt.__file__).parent / "csrc/op/meta/structured_metas.cpp"
    listed = set(re.findall(r"of<at::_ops::(\w+),", source.read_text()))
    wanted = {
        overload
        for row in ROWS
        if isinstance(row, CustomKernel | Decomposed) and "::" not in row.aten
        for overload in structured_overloads(row)
    }
    assert len(wanted) > 50
    assert wanted == listed


@pytest.mark.parametrize("mapping", ["CPU", "GPU"])
def test_layer_norm_imports_no_compiler(mapping: str) -> None:
    code = """
    import sys, torch, xpurt
    xpurt.set_kernel_policy("sycl")
    x = torch.randn(2, 3, 4, device="xpu")
    own = [torch.nn.functional.layer_norm(x, shape) for shape in ((4,), (3, 4))]
    for each in own:
        print(round(each.cpu().std(unbiased=False).item(), 3))
    print("torch._dynamo" in sys.modules)
    try:
        torch.native_layer_norm(x, (3,), None, None, 1e-5)
    except RuntimeError as error:
        print(str(error).split(",")[0])
    """
    assert output(code, XPURT_MAPPING=mapping).splitlines() == [
        *["1.0"] * 2,
        "False",
        "Given normalized_shape=[3]",
    ]
