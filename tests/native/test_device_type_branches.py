"""Branches of PyTorch on the device type: xpu gives the results of the CPU.

device_type_branches.md beside this file lists every branch, and the test for it.
"""

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from torch.nn.attention.bias import causal_lower_right
from torch.nn.utils.rnn import pack_padded_sequence

import xpurt

PAGE = Path(__file__).with_name("device_type_branches.md")

Put = Callable[[torch.Tensor], torch.Tensor]
Case = Callable[[Put], object]

CASES: dict[str, Case] = {}


def case(function: Case) -> Case:
    CASES[function.__name__] = function
    return function


def with_gradients(result: torch.Tensor, *leaves: torch.Tensor) -> list[torch.Tensor]:
    sent = torch.linspace(-1, 1, result.numel(), dtype=torch.float64)
    sent = sent.reshape(result.shape).to(result.dtype).to(result.device)
    return [result.detach(), *torch.autograd.grad(result, leaves, sent)]


@case
def recurrent_layers(put: Put) -> list[torch.Tensor]:
    found = []
    x = put(torch.randn(6, 3, 4)).requires_grad_()
    for kind in (torch.nn.RNN, torch.nn.LSTM, torch.nn.GRU):
        module = kind(4, 5, num_layers=2, bidirectional=True)
        layer = module.to(x.device)
        found += with_gradients(layer(x)[0], x, *layer.parameters())
        packed = pack_padded_sequence(x, torch.tensor([6, 4, 1]))
        found += with_gradients(layer(packed)[0].data, x)
    return found


@case
def recurrent_cells(put: Put) -> list[torch.Tensor]:
    found = []
    x, state = (put(torch.randn(3, 5)).requires_grad_() for _ in range(2))
    for kind in (torch.nn.RNNCell, torch.nn.GRUCell):
        found += with_gradients(kind(5, 5).to(x.device)(x, state), x, state)
    cell = torch.nn.LSTMCell(5, 5).to(x.device)
    return found + with_gradients(cell(x, (state, state))[1], x, state)


@case
def convolutions_of_channels_last(put: Put) -> list[torch.Tensor]:
    found = []
    x = torch.randn(2, 4, 7, 6).contiguous(memory_format=torch.channels_last)
    images = put(x).requires_grad_()
    for weight, call in (
        (torch.randn(6, 4, 3, 3), F.conv2d),
        (torch.randn(4, 6, 3, 3), F.conv_transpose2d),
    ):
        there = put(weight).requires_grad_()
        found += with_gradients(call(images, there), images, there)
    assert all(each.dim() == 4 for each in found)
    return found


@case
def halves_into_float(put: Put) -> list[torch.Tensor]:
    found = []
    for dtype in (torch.float16, torch.bfloat16):
        x = put(torch.randn(5, 40).to(dtype)).requires_grad_()
        for call in (torch.sum, torch.mean, torch.nansum, torch.prod):
            found += with_gradients(call(x, 1, dtype=torch.float32), x)
        for softmax in (torch.softmax, torch.log_softmax):
            found += with_gradients(softmax(x, 1, dtype=torch.float32), x)
    return found


@case
def variances(put: Put) -> list[torch.Tensor]:
    x = put(torch.randn(300, 7) + 1000)
    return [x.var(), x.std(0), *torch.var_mean(x), *torch.std_mean(x, 1)]


@case
def indices_on_the_cpu(put: Put) -> list[torch.Tensor]:
    x = put(torch.randn(5, 4)).requires_grad_()
    index = torch.tensor([4, 0, 0])
    found = with_gradients(x[index], x) + with_gradients(x[:, index[1:]], x)
    changed = put(torch.zeros(5, 4))
    changed[index] = 2.0
    changed[put(torch.arange(5)) > 3] = torch.tensor(3.0)
    return [*found, changed, changed.masked_fill(changed > 2, torch.tensor(7.0))]


@case
def index_put_in_any_order(put: Put) -> list[torch.Tensor]:
    index = put(torch.tensor([1, 3, 1, 1]))
    values = put(torch.randn(3, 4)).t()
    target = put(torch.randn(3, 5)).t()
    return [
        target.index_put((index,), values, accumulate=True),
        torch.ops.aten.index_put(
            target, [None, index.clamp(max=2)], target[:, :1], True
        ),
        target.index_put((put(torch.tensor([0, 4])),), values[0]),
    ]


@case
def attention_with_a_causal_bias(put: Put) -> list[torch.Tensor]:
    found = []
    for width in (8, 40):
        q, k, v = (put(torch.randn(2, 2, n, width)) for n in (3, 5, 5))
        leaves = [each.requires_grad_() for each in (q, k, v)]
        mask = causal_lower_right(3, 5)
        found += with_gradients(F.scaled_dot_product_attention(*leaves, mask), *leaves)
        found += with_gradients(F.scaled_dot_product_attention(*leaves), *leaves)
    return found


@case
def transformer_in_inference(put: Put) -> list[torch.Tensor]:
    layer = torch.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True).eval()
    encoder = torch.nn.TransformerEncoder(layer, 2, enable_nested_tensor=False).eval()
    x = put(torch.randn(3, 5, 8))
    with torch.no_grad():
        attended = layer.to(x.device).self_attn(x, x, x)[0]
        return [layer(x), encoder.to(x.device)(x), attended]


@case
def clipped_gradients(put: Put) -> list[torch.Tensor]:
    leaves = [put(torch.randn(n, 3)).requires_grad_() for n in (2, 5)]
    for leaf in leaves:
        leaf.grad = leaf.detach() * 3
    norm = torch.nn.utils.clip_grad_norm_(leaves, 1.0)
    torch.nn.utils.clip_grad_value_(leaves, 0.2)
    flat = torch.nn.utils.parameters_to_vector(leaves)
    return [norm, *(leaf.grad for leaf in leaves), flat.detach()]


@case
def losses_that_ask(put: Put) -> list[torch.Tensor]:
    scores = put(torch.randn(8, 3, 5).log_softmax(2)).requires_grad_()
    targets = torch.randint(1, 5, (3, 4))
    lengths = torch.full((3,), 8), torch.tensor([4, 2, 3])
    found = with_gradients(F.ctc_loss(scores, put(targets), *lengths), scores)
    x, y = (put(torch.randn(n, 4)).requires_grad_() for n in (30, 27))
    return found + with_gradients(torch.cdist(x, y), x, y)


@case
def weights_by_norm(put: Put) -> list[torch.Tensor]:
    v, g = put(torch.randn(6, 5)).requires_grad_(), put(torch.randn(6, 1))
    return with_gradients(torch._weight_norm(v, g.requires_grad_(), 0), v, g)


@case
def ties_share_the_gradient(put: Put) -> list[torch.Tensor]:
    x = put(torch.tensor([[1.0, 3, 3], [3, 0, 3]])).requires_grad_()
    calls = (torch.max, torch.median, lambda t: t.amax(0), lambda t: t.amin())
    return [each for call in calls for each in with_gradients(call(x), x)]


def of_images(call: Callable[[torch.Tensor], torch.Tensor], *shape: int) -> Case:
    def images(put: Put) -> list[torch.Tensor]:
        x = put(torch.randn(shape)).requires_grad_()
        return with_gradients(call(x), x)

    return images


# Ops that change under torch.use_deterministic_algorithms.
DETERMINISTIC: dict[str, Case] = {
    "index_put_in_any_order": index_put_in_any_order,
    "bilinear": of_images(
        lambda x: F.interpolate(x, scale_factor=1.5, mode="bilinear"), 2, 3, 6, 4
    ),
    "linear": of_images(lambda x: F.interpolate(x, size=9, mode="linear"), 2, 3, 6),
    "trilinear": of_images(
        lambda x: F.interpolate(x, size=5, mode="trilinear"), 1, 2, 3, 4, 3
    ),
    "replicated": of_images(lambda x: F.pad(x, (2, 1, 0, 3), "replicate"), 2, 3, 4, 5),
    "max_pool3d": of_images(lambda x: F.max_pool3d(x, 2), 1, 2, 4, 4, 6),
    "scatter": lambda put: [
        put(torch.zeros(4, 5)).scatter(0, put(torch.tensor([[1, 3]])), 2.0),
        put(torch.zeros(7)).scatter_add(
            0, put(torch.tensor([1, 1, 6])), put(torch.ones(3))
        ),
        put(torch.ones(7)).scatter_reduce(
            0, put(torch.tensor([1, 1, 6])), put(torch.full((3,), 2.0)), "sum"
        ),
        put(torch.zeros(4, 3)).index_add(
            0, put(torch.tensor([2, 2])), put(torch.ones(2, 3))
        ),
        put(torch.zeros(4, 3)).index_copy(
            0, put(torch.tensor([2, 0])), put(torch.ones(2, 3))
        ),
        put(torch.arange(6.0)).cumsum(0),
    ],
}


def of_both(given: Case, xpu: torch.device) -> Iterator[tuple[object, object]]:
    found = []
    for device in (torch.device("cpu"), xpu):
        torch.manual_seed(0)
        found.append(given(lambda t, device=device: t.to(device)))
    return zip(*found, strict=True)


@pytest.fixture(params=["auto", "sycl"])
def policy(request: pytest.FixtureRequest) -> Iterator[None]:
    with xpurt.kernel_policy(request.param):
        yield


@pytest.fixture
def deterministic() -> Iterator[None]:
    torch.use_deterministic_algorithms(True)
    yield
    torch.use_deterministic_algorithms(False)


def assert_alike(given: Case, xpu: torch.device) -> None:
    for theirs, ours in of_both(given, xpu):
        assert ours.device.type == "xpu"
        assert ours.dtype == theirs.dtype
        torch.testing.assert_close(ours.cpu(), theirs, rtol=1e-4, atol=2e-5)


@pytest.mark.usefixtures("policy")
@pytest.mark.parametrize("name", CASES)
def test_xpu_gives_what_the_cpu_gives(xpu: torch.device, name: str) -> None:
    assert_alike(CASES[name], xpu)


@pytest.mark.usefixtures("policy", "deterministic")
@pytest.mark.parametrize("name", DETERMINISTIC)
def test_deterministic_algorithms_give_it_too(xpu: torch.device, name: str) -> None:
    assert_alike(DETERMINISTIC[name], xpu)


@pytest.mark.usefixtures("policy")
def test_dropout_keeps_what_it_scales(xpu: torch.device) -> None:
    """The branch for xpu is the fused op; the numbers that it draws are its own."""
    x = torch.rand(50, 40).add(0.5).to(xpu).requires_grad_()
    result = F.dropout(x, 0.25)
    (gradient,) = torch.autograd.grad(result, x, torch.ones_like(result))
    kept = (result != 0).cpu()
    assert 0.6 < kept.float().mean() < 0.9
    wanted = torch.where(kept, x.detach().cpu() / 0.75, 0)
    torch.testing.assert_close(result.detach().cpu(), wanted)
    torch.testing.assert_close(gradient.cpu(), kept / 0.75)
    assert torch.equal(F.dropout(x, 0.25, training=False), x)


def test_the_page_names_tests_that_there_are() -> None:
    text = PAGE.read_text()
    folder = PAGE.parents[1]
    named = set(re.findall(r"`(\w+/test_\w+\.py)(?:::(\w+))?`", text))
    assert named
    for file, name in named:
        source = (folder / file).read_text()
        assert f"def {name}(" in source or f'"{name}"' in source, (file, name)
    for name in CASES:
        assert f"::{name}`" in text, f"{name} stands for no place of the page"
