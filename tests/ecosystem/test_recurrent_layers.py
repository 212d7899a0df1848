"""Layers of LSTM, GRU and plain RNNs on xpu."""

from typing import Any

import pytest
import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

import xpurt
from xpurt import _C
from xpurt.testing.oracle import agree

KINDS = [nn.LSTM, nn.GRU, nn.RNN]
POLICIES = ["auto", "sycl"]
LAYER, BACKWARD = "xpurt::lstm_layer", "aten::mkldnn_rnn_layer_backward"
TREE = dict[str, torch.Tensor]


def weights_of(model: nn.Module) -> TREE:
    return {name: p.detach().requires_grad_() for name, p in model.named_parameters()}


def ran() -> dict[str, str]:
    """The tier of each op that was counted."""
    torch.xpu.synchronize()
    return {row[0]: row[1] for row in _C.op_report()}


@pytest.fixture
def is_read_by_the_host(xpu: torch.device) -> bool:
    """Whether PyTorch's CPU kernels work on the device's own bytes."""
    _C.reset_op_report()
    torch.ones(2, 2, device=xpu).geqrf()
    return ran()["aten::geqrf"] == "native"


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("kind", KINDS, ids=lambda k: k.__name__)
@pytest.mark.parametrize("packed", [False, True], ids=["padded", "packed"])
def test_gradients(
    kind: type[nn.RNNBase], packed: bool, policy: str, xpu: torch.device
) -> None:
    model = kind(4, 5, num_layers=2, bidirectional=True)

    def run(state: TREE, x: torch.Tensor) -> torch.Tensor:
        given = pack_padded_sequence(x, torch.tensor([3, 2])) if packed else x
        found, _ = torch.func.functional_call(model, state, (given,))
        return pad_packed_sequence(found)[0] if packed else found

    x = torch.randn(3, 2, 4, requires_grad=True)
    with xpurt.kernel_policy(policy):
        agree(run, weights_of(model), x, device=xpu)


@pytest.mark.parametrize("kind", KINDS, ids=lambda k: k.__name__)
@pytest.mark.parametrize("off", [torch.no_grad, torch.inference_mode])
def test_without_gradients(
    kind: type[nn.RNNBase], off: type[torch.no_grad], xpu: torch.device
) -> None:
    model = kind(4, 5, num_layers=2, bidirectional=True, batch_first=True).eval()
    x = torch.randn(3, 2, 4)
    with off():
        expected, last = model(x)
        found, found_last = model.to(xpu)(x.to(xpu))
    assert not found.requires_grad
    torch.testing.assert_close(found.cpu(), expected)
    for one, other in zip(found_last, last, strict=True):
        torch.testing.assert_close(one.cpu(), other)


FORMS: dict[str, dict[str, Any]] = {
    "one layer": {},
    "without biases": {"bias": False},
    "batch first": {"batch_first": True, "bidirectional": True},
    "three layers": {"num_layers": 3},
    # All that goes between layers is dropped, whatever the random numbers.
    "dropout": {"num_layers": 2, "dropout": 1.0},
    "projections": {"proj_size": 3, "num_layers": 2, "bidirectional": True},
    "float64": {"dtype": torch.float64, "num_layers": 2},
    "bfloat16": {"dtype": torch.bfloat16},
}


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU], ids=lambda k: k.__name__)
def test_forms(
    kind: type[nn.RNNBase], form: str, policy: str, xpu: torch.device
) -> None:
    if kind is nn.GRU and form == "projections":
        pytest.skip("PyTorch has projections for LSTMs alone")
    model = kind(4, 5, **FORMS[form])
    dtype = FORMS[form].get("dtype", torch.float32)
    directions = 2 if model.bidirectional else 1
    size = model.proj_size or 5
    count = model.num_layers * directions
    h, c = torch.randn(count, 2, size, dtype=dtype), torch.randn(count, 2, 5)

    def run(state: TREE, x: torch.Tensor, h: torch.Tensor, c: torch.Tensor) -> Any:
        states = (h, c) if kind is nn.LSTM else h
        return torch.func.functional_call(model, state, (x, states))

    given = [torch.randn(2, 2, 4), h, c]
    given = [t.to(dtype).requires_grad_() for t in given]
    near = 5e-2 if dtype == torch.bfloat16 else None
    with xpurt.kernel_policy(policy):
        agree(run, weights_of(model), *given, device=xpu, rtol=near, atol=near)


def train(model: nn.Module, x: torch.Tensor) -> list[torch.Tensor]:
    output, _ = model(x)
    output.square().sum().backward()
    return [output.detach(), *(p.grad for p in model.parameters())]


def test_an_lstm_is_the_cpu_s_where_the_host_reads(
    is_read_by_the_host: bool, xpu: torch.device
) -> None:
    """To the bit, until another tier is known to be quicker; elsewhere by a kernel for
    each cell. Nothing is copied."""
    model, x = nn.LSTM(4, 5, 2), torch.randn(3, 2, 4)
    expected = train(model, x)
    model.zero_grad()
    model.to(xpu)
    for policy in ("auto", "sycl"):
        _C.reset_op_report()
        with xpurt.kernel_policy(policy):
            found = train(model, x.to(xpu))
        model.zero_grad()
        tiers = ran()
        whole = policy == "auto" and is_read_by_the_host
        if whole:
            assert tiers[LAYER] == tiers[BACKWARD] == "native"
        else:
            assert BACKWARD not in tiers
            assert tiers[LAYER] == "sycl"
            assert tiers["aten::_thnn_fused_lstm_cell"] == "sycl"
            assert tiers["aten::_thnn_fused_lstm_cell_backward_impl"] == "sycl"
            assert "copy" not in tiers.values()
        near = 0.0 if whole else 1e-5
        for one, other in zip(found, expected, strict=True):
            torch.testing.assert_close(one.cpu(), other, rtol=near, atol=near)


@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU], ids=lambda k: k.__name__)
def test_the_input_s_part_of_all_gates_is_one_product(
    kind: type[nn.RNNBase], xpu: torch.device
) -> None:
    # oneDNN has no float64 layers.
    place: dict[str, Any] = {"device": xpu, "dtype": torch.float64}
    model, x = kind(4, 5, **place), torch.randn(7, 2, 4, **place)
    _C.reset_op_report()
    with torch.no_grad(), xpurt.kernel_policy("sycl"):
        model(x)
    torch.xpu.synchronize()
    products = [row[3] for row in _C.op_report() if row[0] == "aten::mm"]
    assert sum(products) == 8  # one, and one per step


def test_one_tensor_for_both_states(xpu: torch.device) -> None:
    model = nn.LSTM(4, 5)

    def run(state: TREE, x: torch.Tensor, both: torch.Tensor) -> Any:
        return torch.func.functional_call(model, state, (x, (both, both)))

    both = torch.randn(1, 2, 5, requires_grad=True)
    agree(run, weights_of(model), torch.randn(3, 2, 4), both, device=xpu)


@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU], ids=lambda k: k.__name__)
def test_gradients_of_gradients(kind: type[nn.RNNBase], xpu: torch.device) -> None:
    model = kind(4, 5)

    def run(state: TREE, x: torch.Tensor) -> torch.Tensor:
        output, _ = torch.func.functional_call(model, state, (x,))
        loss = output.square().sum()
        (to_x,) = torch.autograd.grad(loss, x, create_graph=True)
        return to_x.square().sum()

    agree(run, weights_of(model), torch.randn(3, 2, 4, requires_grad=True), device=xpu)


@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU], ids=lambda k: k.__name__)
def test_autocast_has_its_type(kind: type[nn.RNNBase], xpu: torch.device) -> None:
    model, x = kind(4, 5), torch.randn(3, 2, 4)
    expected, _ = model(x)
    with torch.autocast("xpu", torch.bfloat16):
        found, _ = model.to(xpu)(x.to(xpu))
    assert found.dtype == torch.bfloat16
    torch.testing.assert_close(found.cpu().float(), expected, rtol=2e-2, atol=2e-2)


WRONG: dict[str, tuple[tuple[int, ...], tuple[int, ...], int]] = {
    "size of the input": ((3, 2, 6), (1, 2, 5), 5),
    "batch of the state": ((3, 2, 4), (1, 3, 5), 5),
    "size of the state": ((3, 2, 4), (1, 2, 6), 5),
    "layers of the state": ((3, 2, 4), (2, 2, 5), 5),
    "weights": ((3, 2, 4), (1, 2, 5), 6),
    "empty batch": ((3, 0, 4), (1, 0, 5), 5),
    "no steps": ((0, 2, 4), (1, 2, 5), 5),
}


@pytest.mark.parametrize("what", WRONG)
@pytest.mark.parametrize("grad", [True, False], ids=["grad", "no grad"])
def test_what_does_not_fit_is_refused(what: str, grad: bool, xpu: torch.device) -> None:
    """By the function below the modules, since modules check sizes themselves."""
    input_sizes, state_sizes, hidden = WRONG[what]
    sizes = [(4 * hidden, 4), (4 * hidden, 5), (4 * hidden,), (4 * hidden,)]
    params = [torch.randn(s, device=xpu) for s in sizes]
    x, state = (torch.randn(s, device=xpu) for s in (input_sizes, state_sizes))
    options = (True, 1, 0.0, True, False, False)
    with torch.set_grad_enabled(grad):
        if what == "empty batch":
            assert torch.lstm(x, [state, state], params, *options)[0].numel() == 0
            return
        with pytest.raises(RuntimeError):
            torch.lstm(x, [state, state], params, *options)


def test_forward_mode_is_refused_as_on_the_cpu(xpu: torch.device) -> None:
    model = nn.LSTM(4, 5).to(xpu)
    x = torch.randn(3, 2, 4, device=xpu)
    with pytest.raises(NotImplementedError, match="forward AD"):
        torch.func.jvp(lambda t: model(t)[0], (x,), (x,))
