"""The oracle, tried with the CPU on both sides: it has to see what a device spoils."""

from collections.abc import Callable

import pytest
import torch

from xpurt.testing.oracle import Comparison, Disagreement, agree, copied

CPU = torch.device("cpu")


class Spoiler:
    """Computes as `right` at the first call, which is the CPU's, then as `wrong`."""

    def __init__(self, right: Callable, wrong: Callable) -> None:
        self.turns = iter([right, wrong])

    def __call__(self, *args: object, **kwargs: object) -> object:
        return next(self.turns)(*args, **kwargs)


def test_equal_results_agree_and_are_returned() -> None:
    x = torch.arange(6.0).reshape(2, 3)
    result = agree(torch.sum, x, dim=1, device=CPU)
    assert result.tolist() == [3.0, 12.0]


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (lambda x: x + 1e-3, "result: Tensor-likes are not close"),
        (lambda x: x.double(), "dtype torch.float64, not torch.float32"),
        (lambda x: x.reshape(3, 2), "shape torch.Size([3, 2])"),
        (lambda x: x.t().contiguous().t(), "strides (1, 2), not (3, 1)"),
        (lambda x: x.detach(), "requires_grad False, not True"),
        (lambda x: [x * 1.0], "result: "),
        (lambda x: x.mm(x), "CPU gave a result, cpu raised RuntimeError"),
    ],
    ids=["value", "dtype", "shape", "strides", "graph", "form", "error"],
)
def test_a_spoiled_result_is_seen(wrong: Callable, said: str) -> None:
    x = torch.arange(6.0).reshape(2, 3).requires_grad_()
    with pytest.raises(Disagreement) as error:
        agree(Spoiler(lambda x: x * 1.0, wrong), x, device=CPU)
    assert said in str(error.value)


def test_a_spoiled_gradient_is_seen() -> None:
    class Halved(torch.autograd.Function):
        @staticmethod
        def forward(ctx: object, x: torch.Tensor) -> torch.Tensor:
            return x * 1.0

        @staticmethod
        def backward(ctx: object, grad: torch.Tensor) -> torch.Tensor:
            return grad / 2

    x = torch.ones(3, requires_grad=True)
    spoiler = Spoiler(lambda x: x * 1.0, Halved.apply)
    with pytest.raises(Disagreement, match="gradient of argument"):
        agree(spoiler, x, device=CPU)
    spoiler = Spoiler(lambda x: x * 1.0, Halved.apply)
    agree(spoiler, x, device=CPU, grads=False)


def test_a_spoiled_argument_is_seen() -> None:
    def spoil(x: torch.Tensor) -> torch.Tensor:
        return x.add_(1) - 1

    with pytest.raises(Disagreement, match=r"^argument"):
        agree(Spoiler(lambda x: x * 1.0, spoil), torch.ones(3), device=CPU)


def test_arguments_of_the_caller_are_not_touched() -> None:
    x = torch.ones(3, requires_grad=True)
    y = torch.zeros(3)
    agree(lambda x, y: y.add_(x * 2), x, y, device=CPU)
    assert x.grad is None
    assert y.tolist() == [0, 0, 0]


def test_the_same_exception_on_both_sides_is_raised_on() -> None:
    with pytest.raises(RuntimeError, match="cannot be multiplied"):
        agree(torch.mm, torch.ones(2, 3), torch.ones(2, 3), device=CPU)


def test_tolerances_are_the_callers() -> None:
    x = torch.ones(3)
    agree(Spoiler(lambda x: x, lambda x: x + 0.01), x, device=CPU, rtol=0, atol=0.1)


def test_nan_agrees_with_nan_alone() -> None:
    x = torch.tensor([float("nan"), 1.0])
    agree(torch.exp, x, device=CPU)
    with pytest.raises(Disagreement):
        agree(Spoiler(torch.clone, torch.nan_to_num), x, device=CPU)


def test_a_comparison_can_leave_values_out() -> None:
    compare = Comparison(values=False)
    compare("result", (torch.ones(3), 1.0), (torch.zeros(3), 2.0))
    with pytest.raises(Disagreement, match="shape"):
        compare("result", torch.ones(3), torch.ones(4))
    with pytest.raises(Disagreement, match=r"1, not 1\.0"):
        compare("result", 1.0, 1)


def test_a_comparison_can_ask_for_a_place() -> None:
    compare = Comparison(device_type="meta", values=False)
    compare("result", torch.ones(3), torch.ones(3, device="meta"))
    with pytest.raises(Disagreement, match="result is on cpu, not meta"):
        compare("result", torch.ones(3), torch.ones(3))


def test_complex_half_is_compared() -> None:
    x = torch.tensor([1 + 2j], dtype=torch.complex32)
    Comparison()("result", x, x.clone())
    with pytest.raises(Disagreement):
        Comparison()("result", x, x.conj().resolve_conj())


def test_python_numbers_count_as_float32() -> None:
    Comparison()("result", 22.04042244, 22.04041862)
    with pytest.raises(Disagreement):
        Comparison()("result", 22.04042244, 22.0405)
    with pytest.raises(Disagreement):
        Comparison()("result", 3, 4)


def test_complex_numbers_are_compared_as_floats_are() -> None:
    Comparison()("result", complex("nan+1j"), complex("nan+1j"))
    Comparison()("result", 1 + 1j, 1 + 1j + 1e-9)
    with pytest.raises(Disagreement):
        Comparison()("result", 1 + 1j, 1 - 1j)


@pytest.mark.parametrize(
    "tensor",
    [
        torch.arange(12.0).reshape(3, 4).t(),
        torch.arange(12.0)[2::3],
        torch.arange(3.0).expand(2, 3),
        torch.arange(6.0).as_strided((2, 2), (1, 1), 3),
        torch.tensor(5),
        torch.empty(0, 3),
        torch.tensor([1 + 2j]).conj(),
        torch.tensor([1 + 2j]).conj().imag,
        torch.eye(3).to_sparse(),
    ],
    ids=["t", "step", "expand", "overlap", "0-dim", "empty", "conj", "neg", "sparse"],
)
def test_copies_keep_values_and_strides(tensor: torch.Tensor) -> None:
    copy = copied(tensor, CPU)
    assert torch.equal(copy.to_dense(), tensor.to_dense())
    assert copy.layout == tensor.layout
    if tensor.layout is torch.strided:
        assert copy.stride() == tensor.stride()
        assert copy.is_conj() == tensor.is_conj()
        assert copy.is_neg() == tensor.is_neg()
        assert copy.numel() == 0 or copy.data_ptr() != tensor.data_ptr()


def test_a_tensor_without_bytes_stays_what_it_is() -> None:
    x = torch.ones(3, device="meta")
    assert copied([x], CPU)[0] is x


def test_copies_share_what_was_shared() -> None:
    base = torch.zeros(4)
    whole, part, parameter = copied(
        (base, base[1:3], torch.nn.Parameter(torch.ones(2))), CPU
    )
    part.fill_(7)
    assert whole.tolist() == [0, 7, 7, 0]
    assert base.tolist() == [0, 0, 0, 0]
    assert isinstance(parameter, torch.nn.Parameter)


def test_a_module_on_xpu_agrees_with_the_cpu(xpu: torch.device) -> None:
    weight = torch.randn(4, 3, requires_grad=True)
    agree(torch.nn.functional.linear, torch.randn(2, 3), weight, device=xpu)
