"""Matrix products of compiled graphs with frozen parameters: what is computed with them,
and packed weights."""

import copy
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from test_fused_convolutions import (
    ACTIVATIONS,
    EACH_ACTIVATION,
    compiled_code,
    has_primitives,
)
from torch import Tensor, nn
from torch._inductor import config
from torch.testing import assert_close

import xpurt

pytestmark = pytest.mark.filterwarnings("error:torch.compile runs")


class Block(nn.Module):
    """Two linear layers beside a shortcut, on sequences."""

    def __init__(self, activation: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.first = nn.Linear(24, 40)
        self.second = nn.Linear(40, 24, bias=False)
        self.activation = activation

    def forward(self, x: Tensor) -> Tensor:
        return x + self.second(self.activation(self.first(x)))


def fused(code: str) -> list[str]:
    return [
        line for line in code.split("\n") if "= torch.ops.xpurt.fused_product" in line
    ]


@pytest.mark.parametrize("activation", EACH_ACTIVATION)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_activations_and_additions(
    xpu: torch.device, activation: str, dtype: torch.dtype
) -> None:
    if dtype == torch.bfloat16 and activation not in ("relu", "gelu", "gelu_tanh"):
        pytest.skip("three activations in bfloat16 suffice")
    if activation != "gelu" and not has_primitives(xpu):
        pytest.skip("the graph is as without the pass here; one activation suffices")
    model = Block(ACTIVATIONS[activation]).eval().to(xpu, dtype)
    x = torch.randn(2, 5, 24).to(xpu, dtype)
    found, code, _ = compiled_code(model, x)
    expected = copy.deepcopy(model).cpu().float()(x.cpu().float())
    tolerance = 1e-5 if dtype == torch.float32 else 3e-2
    assert_close(found.cpu().float(), expected, rtol=tolerance, atol=tolerance)
    if has_primitives(xpu, dtype):
        first, second = fused(code)
        assert f"'{activation}'" in first
        assert "'none'" in second
        assert all("_packed_" in line for line in (first, second))
        assert "__kernel void" not in code  # nothing is left between them


class Shared(nn.Module):
    """A product with two readers, one whose addend is transposed, and one of a single
    row."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(8, 8)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        y = self.layer(x)
        return y.relu() + y, self.layer(x) + x.T, self.layer(x[:1]).tanh()


def test_values_that_others_read_and_other_layouts(xpu: torch.device) -> None:
    model, x = Shared().eval().to(xpu), torch.randn(8, 8).to(xpu)
    found, _, _ = compiled_code(model, x)
    with torch.no_grad():
        for one, expected in zip(found, model(x), strict=True):
            assert_close(one, expected, rtol=1e-5, atol=1e-5)
            assert one.stride() == expected.stride()


def test_without_freezing_products_are_as_in_eager_mode(xpu: torch.device) -> None:
    """The primitive's ReLU makes 0 of NaN."""
    model = nn.Sequential(nn.Linear(8, 8), nn.ReLU()).to(xpu)
    x = torch.randn(4, 8)
    x[0, 0] = torch.nan
    found, code, _ = compiled_code(model, x.to(xpu), frozen=False)
    assert_close(found, model(x.to(xpu)), rtol=1e-5, atol=1e-5, equal_nan=True)
    assert bool(found.isnan().any())
    assert not fused(code)


def direct(x: Tensor, weight: Tensor, **changed: object) -> Tensor:
    arguments: dict[str, object] = {
        "bias": None, "other": None, "weight_sizes": list(weight.shape),
        "activation": "none", "alpha": 0.0, "beta": 0.0,
    }  # fmt: skip
    arguments.update(changed)
    result: Tensor = torch.ops.xpurt.fused_product(x, weight, **arguments)
    return result


@pytest.mark.parametrize("transposed", [False, True])
def test_the_op_on_any_device(xpu: torch.device, transposed: bool) -> None:
    """Where no primitive runs, PyTorch's ops compute it."""
    x, weight, bias, other = (
        torch.randn(sizes) for sizes in ((6, 16), (16, 10), (10,), (6, 10))
    )
    expected = torch.tanh(x @ weight + bias + other)
    on_xpu = weight.T.contiguous().to(xpu).T if transposed else weight.to(xpu)
    found = direct(
        x.to(xpu), on_xpu, bias=bias.to(xpu), other=other.to(xpu), activation="tanh"
    )
    assert_close(found.cpu(), expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("layout", ["dense", "gaps", "transposed"])
def test_products_of_a_batch(xpu: torch.device, layout: str) -> None:
    x, weight = torch.randn(3, 5, 16).to(xpu), torch.randn(3, 16, 10).to(xpu)
    expected = x.cpu() @ weight.cpu()
    if layout == "gaps":
        x = torch.empty_strided((3, 5, 16), (96, 16, 1), device=xpu).copy_(x)
    if layout == "transposed":
        x = x.mT.contiguous().mT
    assert_close(direct(x, weight).cpu(), expected, rtol=1e-5, atol=1e-5)
    with pytest.raises(ValueError, match="nothing is added"):
        direct(x, weight, bias=torch.ones(10).to(xpu))


def test_wrong_arguments_of_the_op(xpu: torch.device) -> None:
    x, weight = torch.randn(4, 6).to(xpu), torch.randn(6, 3).to(xpu)
    with pytest.raises(ValueError, match="does not fit the input"):
        direct(x, weight, weight_sizes=[5, 3])
    with pytest.raises(ValueError, match="are matrices"):
        direct(x[0], weight)
    with pytest.raises(ValueError, match="a bias of 3 elements fits"):
        direct(x, weight, bias=torch.ones(2).to(xpu))
    with pytest.raises(ValueError, match="the tensor to add is"):
        direct(x, weight, other=torch.ones(4, 2).to(xpu))
    with pytest.raises(ValueError, match="has an empty tensor"):
        direct(x[:0], weight)
    with pytest.raises(ValueError, match="takes at least 72 bytes; found 0"):
        direct(x, weight.new_empty(0), weight_sizes=[6, 3])
    with pytest.raises(ValueError, match="no activation is called softsign"):
        direct(x, weight, activation="softsign")


def test_calls_of_several_threads_on_their_streams(xpu: torch.device) -> None:
    model = Block(ACTIVATIONS["gelu"]).eval().to(xpu)
    inputs = [torch.randn(2, 5, 24).to(xpu) for _ in range(4)]
    compiled = torch.compile(model)

    def call(x: Tensor) -> Tensor:
        with torch.no_grad(), torch.xpu.stream(torch.xpu.Stream()):
            result: Tensor = compiled(x)
            torch.xpu.current_stream().synchronize()
        return result

    with config.patch(freezing=True), xpurt.kernel_policy("sycl"):
        call(inputs[0])
    with ThreadPoolExecutor(4) as threads:
        results = list(threads.map(call, inputs))
    for x, found in zip(inputs, results, strict=True):
        assert_close(found, model(x), rtol=1e-5, atol=1e-5)
