"""Kernels of users for tensors of other layouts than dense."""

from collections.abc import Iterator

import pytest
import torch
from nested_samples import Make, nested
from sparse_samples import quantized, sparse

KEYS = {
    "NestedTensorXPU": lambda xpu: nested(Make(xpu)),
    "SparseXPU": lambda xpu: sparse("coo", Make(xpu)),
    "SparseCsrXPU": lambda xpu: sparse("csr", Make(xpu)),
    "QuantizedXPU": lambda xpu: quantized(Make(xpu)),
}


@pytest.fixture
def library() -> Iterator[torch.library.Library]:
    with torch.library._scoped_library("own_layouts", "DEF") as made:
        made.define("same(Tensor x) -> Tensor")
        made.define("count(Tensor x) -> int")
        yield made


@pytest.mark.filterwarnings("ignore:.*(nested|CSR|quantize)")
@pytest.mark.parametrize("key", KEYS)
def test_a_users_kernel_is_reached(
    key: str, xpu: torch.device, library: torch.library.Library
) -> None:
    seen = []
    library.impl("count", lambda x: seen.append(x.device) or 7, key)
    assert torch.ops.own_layouts.count(KEYS[key](xpu)) == 7
    assert seen == [xpu]


@pytest.mark.filterwarnings("ignore:.*(nested|CSR|quantize)")
@pytest.mark.parametrize("key", KEYS)
def test_one_for_the_cpu_runs_on_host_tensors(
    key: str, xpu: torch.device, library: torch.library.Library
) -> None:
    seen = []

    def same(x: torch.Tensor) -> torch.Tensor:
        seen.append(x.device.type)
        return x.clone()

    library.impl("same", same, key.replace("XPU", "CPU"))
    made = KEYS[key](xpu)
    result = torch.ops.own_layouts.same(made)
    assert seen == ["cpu"]
    assert (result.device, result.layout) == (xpu, made.layout)
