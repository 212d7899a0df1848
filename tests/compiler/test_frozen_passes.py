"""The passes over frozen graphs, on graphs as Inductor gives them, without its code: which
nodes become primitives of oneDNN, and that the graph computes what it did."""

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import Tensor
from torch._inductor.decomposition import select_decomp_table
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx import GraphModule
from torch.fx.experimental.proxy_tensor import make_fx
from torch.fx.passes.fake_tensor_prop import FakeTensorProp
from torch.nn import functional as F
from torch.testing import assert_close

from xpurt.compiler.frozen import convolutions, forms, primitives, products
from xpurt.functional.winograd import PANEL

pytestmark = pytest.mark.mappings("CPU")

PRODUCT = torch.ops.xpurt.fused_product.default
PANELS = torch.ops.xpurt.panel_linear.default
CONVOLUTION = torch.ops.xpurt.fused_convolution.default
OPS = (PRODUCT, PANELS, CONVOLUTION)

Function = Callable[..., Any]

ACTIVATIONS: dict[str, tuple[Function, tuple[str, float, float]]] = {
    "relu": (F.relu, ("relu", 0, 0)),
    "gelu": (F.gelu, ("gelu", 0, 0)),
    "gelu_tanh": (lambda y: F.gelu(y, approximate="tanh"), ("gelu_tanh", 0, 0)),
    "silu": (F.silu, ("silu", 0, 0)),
    "sigmoid": (torch.sigmoid, ("sigmoid", 0, 0)),
    "tanh": (torch.tanh, ("tanh", 0, 0)),
    "hardswish": (F.hardswish, ("hardswish", 0, 0)),
    "elu": (F.elu, ("elu", 1, 0)),
    "relu6": (F.relu6, ("clamp", 0, 6)),
    "hardtanh": (F.hardtanh, ("clamp", -1, 1)),
    "clamp": (lambda y: y.clamp(0, 1), ("clamp", 0, 1)),
    "leaky_relu": (F.leaky_relu, ("leaky_relu", 0.01, 0)),
    "leaky_relu 0.1": (lambda y: F.leaky_relu(y, 0.1), ("leaky_relu", 0.1, 0)),
    "leaky_relu 0.2": (lambda y: F.leaky_relu(y, 0.2), ("leaky_relu", 0.2, 0)),
}


@pytest.fixture
def numbers(xpu: torch.device) -> Iterator[Callable[..., Tensor]]:
    primitives.define()
    generator = torch.Generator().manual_seed(0)

    def make(*sizes: int) -> Tensor:
        return torch.randn(sizes, generator=generator).to(xpu)

    with torch.no_grad():
        yield make


def graph_of(function: Function, *inputs: Tensor) -> GraphModule:
    """With the values that Inductor's nodes have. Tensors that are no inputs are its
    constants."""
    graph: GraphModule = make_fx(function, decomposition_table=select_decomp_table())(
        *inputs
    )
    mode = FakeTensorMode(allow_non_fake_inputs=True)
    FakeTensorProp(graph, mode).propagate(*inputs)
    return graph


def fused(
    replace: Callable[[GraphModule], bool], function: Function, *inputs: Tensor
) -> list[Any]:
    """The primitives after the pass, which computes what the function does."""
    graph = graph_of(function, *inputs)
    was_changed = replace(graph)
    graph.graph.eliminate_dead_code()
    graph.graph.lint()
    graph.recompile()
    expected = function(*inputs)
    found = graph(*inputs)
    assert_close(found, expected, rtol=2e-5, atol=2e-5)
    made = [each for each in graph.graph.nodes if each.target in OPS]
    assert was_changed == bool(made)
    return made


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activations_of_products(name: str, numbers: Callable[..., Tensor]) -> None:
    columns = PANEL + 1
    weight, bias, x = numbers(8, columns), numbers(columns), numbers(4, 8)
    function, activation = ACTIVATIONS[name]
    made = fused(products.replace, lambda x: function(torch.addmm(bias, x, weight)), x)
    assert [each.args[5:] for each in made] == [activation]


@pytest.mark.skipif(
    torch.backends.cpu.get_cpu_capability() != "AVX2",
    reason="products of panels want AVX2",
)
@pytest.mark.parametrize("biased", [False, True])
@pytest.mark.parametrize("name", ["relu", "gelu", "silu"])
def test_products_of_panels(
    name: str, biased: bool, numbers: Callable[..., Tensor]
) -> None:
    weight, bias, x, other = (
        numbers(*sizes)
        for sizes in ((8, 2 * PANEL), (2 * PANEL,), (4, 8), (4, 2 * PANEL))
    )
    function, _ = ACTIVATIONS[name]

    def model(x: Tensor, other: Tensor) -> Tensor:
        y = torch.addmm(bias, x, weight) if biased else torch.mm(x, weight)
        return function(y + other)  # type: ignore[no-any-return]

    (made,) = fused(products.replace, model, x, other)
    assert made.target == PANELS
    assert made.args[3] is not None
    assert made.args[4:] == (2 * PANEL, "none" if name == "silu" else name)


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activations_of_convolutions(name: str, numbers: Callable[..., Tensor]) -> None:
    weight, x, other = numbers(16, 4, 3, 3), numbers(2, 4, 6, 6), numbers(2, 16, 4, 4)
    function, activation = ACTIVATIONS[name]
    made = fused(
        convolutions.replace, lambda x, z: function(F.conv2d(x, weight) + z), x, other
    )
    assert [each.args[9:12] for each in made] == [activation]
    assert made[0].args[3] is not None


def products_of(numbers: Callable[..., Tensor]) -> dict[str, tuple[Function, int]]:
    """Functions of (6, 8), (6, 6) and (6,), and how many nodes are left beside the primitive
    and views: those that it can't compute."""
    weight, bias = numbers(8, 6), numbers(6)
    whole = numbers(6, 6)

    def product(x: Tensor) -> Tensor:
        return torch.addmm(bias, x, weight)

    def read_inside(x: Tensor, z: Tensor, row: Tensor) -> Any:
        y = product(x)
        half = y * 0.5
        return half * (torch.erf(y * 0.7071067811865476) + 1), half

    return {
        "added to itself": (lambda x, z, row: product(x) + product(x), 0),
        "doubled": (lambda x, z, row: (y := product(x)) + y, 1),
        "a row is added": (lambda x, z, row: product(x) + row, 1),
        "a wider one is added": (lambda x, z, row: product(x) + z.double(), 2),
        "a transposed one is added": (lambda x, z, row: product(x) + z.t(), 1),
        "what is read inside": (read_inside, 5),
        "a quotient turned around": (
            lambda x, z, row: (torch.exp(-(y := product(x))) + 1) / y, 4,
        ),
        "a view between": (lambda x, z, row: F.relu(product(x).view(2, 3, 6)), 0),
    } | {
        "beta": (lambda x, z, row: torch.addmm(bias, x, weight, beta=2), -1),
        "a bias of two dimensions": (lambda x, z, row: torch.addmm(whole, x, weight), -1),
        "a weight that is an input": (lambda x, z, row: torch.mm(z, z), -1),
    }  # fmt: skip


@pytest.mark.parametrize(
    "name",
    [
        "added to itself",
        "doubled",
        "a row is added",
        "a wider one is added",
        "a transposed one is added",
        "what is read inside",
        "a quotient turned around",
        "a view between",
        "beta",
        "a bias of two dimensions",
        "a weight that is an input",
    ],
)
def test_what_follows_a_product(name: str, numbers: Callable[..., Tensor]) -> None:
    function, left = products_of(numbers)[name]
    made = fused(products.replace, function, numbers(6, 8), numbers(6, 6), numbers(6))
    if left < 0:
        assert made == []
        return
    nodes = [node for node in made[0].graph.nodes if node.op == "call_function"]
    counts = Counter(str(node.target) for node in nodes if node not in made)
    for view in ("aten.reshape.default", "aten.view.default", "aten.permute.default"):
        del counts[view]
    assert counts.total() == left, counts
    assert not any("mm" in name for name in counts)


def test_a_product_of_no_rows_stays(numbers: Callable[..., Tensor]) -> None:
    weight, bias = numbers(8, 16), numbers(16)
    assert (
        fused(products.replace, lambda x: torch.addmm(bias, x, weight), numbers(0, 8))
        == []
    )


def test_other_convolutions(numbers: Callable[..., Tensor]) -> None:
    weight, shared = numbers(16, 4, 3, 2), numbers(4, 4, 3, 3)
    x = numbers(2, 4, 9, 8)
    made = fused(
        convolutions.replace,
        lambda x: F.conv2d(x, weight, None, (2, 1), (0, 1), (1, 2)),
        x,
    )
    assert len(made) == 1
    made = fused(convolutions.replace, lambda x: F.conv_transpose2d(x, shared), x)
    assert made == []
    made = fused(
        convolutions.replace,
        lambda x: F.conv2d(
            F.conv2d(x, shared, stride=2), shared, dilation=1, padding=2
        ),
        x,
    )
    assert len({each.args[1].target for each in made}) == len(made) == 2


def test_images_in_blocks_of_channels(numbers: Callable[..., Tensor]) -> None:
    one, two = numbers(32, 32, 3, 3) / 32, numbers(32, 32, 3, 3) / 32
    odd = numbers(32, 20, 3, 3) / 32

    def of_two_images(x: Tensor) -> Tensor:
        y = F.conv2d(x.exp(), one) + F.conv2d(x, two)
        return F.conv2d(y, two) + F.conv2d(y, one)

    assert len(fused(convolutions.replace, of_two_images, numbers(2, 32, 9, 8))) == 4
    images = numbers(2, 20, 9, 8)  # no whole blocks
    function = lambda x: F.conv2d(F.conv2d(x, odd), one)  # noqa: E731
    assert len(fused(convolutions.replace, function, images)) == 2


def test_a_convolution_of_pytorchs_with_an_activation_stays() -> None:
    """Inductor makes it for the CPU."""
    weight, x = torch.randn(16, 4, 3, 3), torch.randn(2, 4, 6, 6)
    op = torch.ops.mkldnn._convolution_pointwise.default
    geometry = [0, 0], [1, 1], [1, 1], 1
    graph = graph_of(lambda x: op(x, weight, None, *geometry, "relu", [], ""), x)
    assert not convolutions.replace(graph)


def test_the_inputs_that_a_graph_writes_to() -> None:
    x, y = torch.zeros(3), torch.ones(3)
    assert forms._written_inputs(graph_of(lambda x, y: y.copy_(x + 1), x, y)) == [1]
    assert forms._written_inputs(graph_of(lambda x, y: x + y, x, y)) == []
