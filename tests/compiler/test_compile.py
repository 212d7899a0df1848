"""torch.compile on xpu as a user calls it, compared with the same program run eagerly."""

import copy
import warnings
from collections.abc import Callable, Sequence

import pytest
import torch
from torch import Tensor, nn
from torch._inductor.utils import run_and_get_code
from torch.nn import functional as F
from torch.testing import assert_close

import xpurt
from xpurt import _C
from xpurt.compiler import inductor_hook

pytestmark = pytest.mark.filterwarnings("error:torch.compile runs")


class Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.queries = nn.Linear(32, 96)
        self.out = nn.Linear(32, 32)

    def forward(self, x: Tensor) -> Tensor:
        batch, length, width = x.shape
        q, k, v = (
            each.view(batch, length, 4, width // 4).transpose(1, 2)
            for each in self.queries(x).chunk(3, -1)
        )
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        joined = F.gelu(mixed.transpose(1, 2).reshape(batch, length, width))
        merged: Tensor = self.out(joined)
        return merged


class LastStates(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(8, 8)

    def forward(self, x: Tensor) -> Tensor:
        states: Tensor = self.lstm(x)[0]
        return states


def perceptron() -> nn.Module:
    return nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.LayerNorm(32))


def convolutions() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten()
    )


MODELS: dict[str, tuple[Callable[[], nn.Module], Sequence[int]]] = {
    "perceptron": (perceptron, (4, 16)),
    "convolutions": (convolutions, (4, 3, 8, 8)),
    "attention": (Attention, (2, 16, 32)),
    "LSTM": (LastStates, (5, 2, 8)),
}


@pytest.mark.one_in(4)
@pytest.mark.mappings("CPU", "GPU")
@pytest.mark.parametrize("name", MODELS)
def test_a_training_step(xpu: torch.device, name: str) -> None:
    make, shape = MODELS[name]
    model = make().to(xpu)
    eager, x = copy.deepcopy(model), torch.randn(shape).to(xpu)
    found, expected = torch.compile(model)(x), eager(x)
    assert found.device == expected.device == x.device
    for result in (found, expected):
        result.square().mean().backward()
    assert_close(found, expected, rtol=1e-4, atol=1e-5)
    for one, other in zip(model.parameters(), eager.parameters(), strict=True):
        assert one.grad is not None
        assert one.grad.device == x.device
        assert_close(one.grad, other.grad, rtol=1e-4, atol=1e-5)
    for one, other in zip(model.buffers(), eager.buffers(), strict=True):
        assert_close(one, other, rtol=1e-4, atol=1e-5)


def test_the_host_computes_it(xpu: torch.device) -> None:
    if not _C.host_reads(xpu.index):
        pytest.skip("the host cannot read the memory")
    model, x = Attention().to(xpu), torch.randn(2, 16, 32).to(xpu)
    with torch.no_grad():
        _, (code,) = run_and_get_code(torch.compile(model), x)
    assert "_scaled_dot_product_flash_attention_for_cpu" in code
    assert "cpp_fused" in code


def test_results_are_views_of_inputs_and_inputs_are_written(xpu: torch.device) -> None:
    @torch.compile
    def add(x: Tensor) -> tuple[Tensor, Tensor]:
        x.add_(1)
        return x.view(-1)[2:], x * 2

    x = torch.zeros(4, 4, device=xpu)
    view, doubled = add(x)
    view.add_(1)
    assert x.sum().item() == 16 + 14
    assert view._is_view()
    assert doubled.sum().item() == 32
    assert doubled.device == view.device == x.device


@pytest.mark.parametrize("policy", ["auto", "sycl"])
def test_pending_work_is_waited_for(xpu: torch.device, policy: str) -> None:
    with xpurt.kernel_policy(policy):
        scale = torch.compile(lambda x: x * 3)
        side = torch.xpu.Stream()
        for _ in range(20):
            x = torch.ones(1 << 16, device=xpu)
            side.wait_stream(torch.xpu.current_stream())
            with torch.xpu.stream(side):
                for _ in range(10):
                    x = x + 1
                assert scale(x).sum().item() == 33 * x.numel()


def test_a_frozen_model(xpu: torch.device) -> None:
    model = convolutions().to(xpu).eval()
    x = torch.randn(4, 3, 8, 8).to(xpu)
    with torch.no_grad():
        expected = model(x)
        found = torch.compile(model, options={"freezing": True})(x)
    assert_close(found, expected, rtol=1e-4, atol=1e-5)
    assert all(each.device == x.device for each in model.parameters())
    assert found.device == x.device


def test_sizes_that_change(xpu: torch.device) -> None:
    scale = torch.compile(lambda x: (x * 2).sum(0), dynamic=True)
    for rows in (3, 5, 9):
        x = torch.ones(rows, 4, device=xpu)
        assert scale(x).tolist() == [2.0 * rows] * 4


def test_an_optimizer(xpu: torch.device) -> None:
    model = nn.Linear(8, 8).to(xpu)
    other = copy.deepcopy(model)
    compiled, eager = (torch.optim.AdamW(m.parameters(), 0.1) for m in (model, other))
    step = torch.compile(lambda: compiled.step())
    for _ in range(2):
        for each in (model, other):
            each.zero_grad()
            each(torch.ones(2, 8, device=xpu)).square().sum().backward()
        step()
        eager.step()
    for one, two in zip(model.parameters(), other.parameters(), strict=True):
        assert_close(one, two)


def test_the_same_program_on_cpu_tensors_has_a_graph_of_its_own(
    xpu: torch.device,
) -> None:
    def double(x: Tensor) -> Tensor:
        return x * 2 + 0.125

    for device in (torch.device("cpu"), xpu, torch.device("cpu")):
        torch._dynamo.reset()  # the next graph is loaded from the folder, if it is there
        found = torch.compile(double)(torch.ones(4, device=device))
        assert found.device == device
        assert found.tolist() == [2.125] * 4


def test_tensors_of_the_cpu_beside_those_of_xpu(xpu: torch.device) -> None:
    def both(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        return x * 2, y + 3

    first, second = torch.compile(both)(torch.ones(3, device=xpu), torch.ones(3))
    assert first.device == xpu
    assert second.device == torch.device("cpu")
    assert (first.tolist(), second.tolist()) == ([2.0] * 3, [4.0] * 3)


@pytest.mark.mappings("CPU")
def test_a_mode_that_would_record_graphs_tells_that_it_does_not(
    xpu: torch.device,
) -> None:
    graph = torch.fx.symbolic_trace(torch.nn.Identity())
    if inductor_hook.form_of({xpu.index or 0}, graph) == inductor_hook.Form.SYCL:
        pytest.skip("graphs of kernels are recorded")
    compiled = torch.compile(lambda x: x.sin() + 1, mode="reduce-overhead")
    x = torch.linspace(0, 1, 8).to(xpu)
    with pytest.warns(RuntimeWarning, match="records no XPU graph"):
        found = compiled(x)
    assert_close(found, x.sin() + 1)
    torch._dynamo.reset()
    with warnings.catch_warnings():
        warnings.filterwarnings("error", "mode=")  # it is said once
        compiled(x)


@pytest.mark.parametrize("policy", ["auto", "sycl"])
def test_results_whose_layout_depends_on_the_device(
    xpu: torch.device, policy: str
) -> None:
    """PyTorch traces a transform on xpu with the layout of Intel's kernels."""

    def transform(x: Tensor) -> Tensor:
        return torch.fft.rfft2(x, dim=(1, 2)).abs() + 1

    x = torch.randn(5, 6, 7).to(xpu)
    expected = transform(x)
    with xpurt.kernel_policy(policy):
        found = torch.compile(transform)(x)
    assert_close(found, expected)
    assert found.stride() == expected.stride()


def test_a_backward_graph_without_a_call(xpu: torch.device) -> None:
    x = torch.randn(5, device=xpu, requires_grad=True)
    sent = torch.randn(5, device=xpu)
    torch.compile(lambda x: torch.frac(x))(x).backward(sent)
    assert_close(x.grad, sent)


@pytest.mark.parametrize("policy", ["auto", "sycl"])
def test_a_graph_with_an_effect(xpu: torch.device, policy: str) -> None:
    """Its first output is a token until the graph has been divided."""

    def root(x: Tensor) -> Tensor:
        return torch.linalg.cholesky(x, upper=True)

    x = (torch.randn(5, 5) / 9 + torch.eye(5)).to(xpu)
    x = (x @ x.T).requires_grad_()
    expected = root(x)
    with xpurt.kernel_policy(policy):
        found = torch.compile(root)(x)
        assert_close(found, expected)
        (gradient,) = torch.autograd.grad(found.sum(), x)
    assert_close(gradient, torch.autograd.grad(expected.sum(), x)[0])


def test_positions_of_loops_are_checked(xpu: torch.device) -> None:
    index = torch.arange(64, device=xpu)

    def read(x: Tensor) -> Tensor:
        mask = index.view(1, 64) < 63
        indices = [None, torch.arange(64, device=x.device)]
        return torch.ops.aten._unsafe_masked_index(x, mask, indices, 7)

    x = torch.randn(4, 63).to(xpu)
    with xpurt.kernel_policy("sycl"):
        compiled = torch.compile(read, options={"debug_index_asserts": True})
        assert_close(compiled(x), read(x))


def test_random_ops_do_not_need_implicit_fallbacks(xpu: torch.device) -> None:
    compiled = torch.compile(
        lambda x: torch.nn.functional.dropout(x, 0.5),
        options={"implicit_fallbacks": False},
    )
    kept = compiled(torch.ones(1000, device=xpu)).count_nonzero().item()
    assert 400 < kept < 600


class CachedAttention(nn.Module):
    """Attention of a decoder. Its keys and values have places for 16 tokens."""

    def __init__(self) -> None:
        super().__init__()
        self.queries = nn.Linear(32, 96)
        for name in ("keys", "values"):
            self.register_buffer(name, torch.zeros(2, 4, 16, 8))

    def forward(self, x: Tensor, places: Tensor) -> Tensor:
        q, k, v = (
            each.unflatten(-1, (4, 8)).transpose(1, 2)
            for each in self.queries(x).chunk(3, -1)
        )
        self.keys.index_copy_(2, places, k)
        self.values.index_copy_(2, places, v)
        before = torch.arange(16, device=x.device) <= places[:, None]
        mixed = F.scaled_dot_product_attention(
            q, self.keys, self.values, attn_mask=before
        )
        return mixed.transpose(1, 2).flatten(2)


@pytest.mark.mappings("CPU", "GPU")
@pytest.mark.parametrize("policy", ["auto", "sycl"])
def test_generation_with_a_static_cache(xpu: torch.device, policy: str) -> None:
    """A text, and then token by token; each call reads what those before have written."""
    model = CachedAttention().to(xpu).eval()
    other = copy.deepcopy(model)
    texts = [torch.randn(2, count, 32).to(xpu) for count in (5, 1, 1)]
    with xpurt.kernel_policy(policy), torch.no_grad():
        compiled, first = torch.compile(model), 0
        for x in texts:
            places = torch.arange(first, first + x.shape[1], device=xpu)
            found, expected = compiled(x, places), other(x, places)
            assert_close(found, expected, rtol=1e-4, atol=1e-5)
            first += x.shape[1]
    assert_close(model.keys, other.keys, rtol=1e-4, atol=1e-5)
    assert model.keys[:, :, :7].all()
