"""What can't be optimized for training, and the messages."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn
from training_cases import adamw, mlp, small

from xpurt.optimization.training.optimize_training import optimize_for_training


def refused(message: str, *arguments: Any, error: type[Exception] = ValueError) -> None:
    with pytest.raises(error, match=message):
        optimize_for_training(*arguments)


def test_a_model_in_evaluation_mode() -> None:
    model = mlp().eval()
    refused("evaluation mode", model, adamw(model.parameters()))


def test_parameters_of_another_model() -> None:
    refused("6 of the 6 parameters", mlp(), adamw(mlp().parameters()))


@pytest.mark.parametrize("dtype", [torch.float16, torch.float64, torch.int8])
def test_other_dtypes(dtype: torch.dtype) -> None:
    model = mlp()
    refused("Use torch.bfloat16", model, adamw(model.parameters()), dtype)


def test_a_second_time() -> None:
    refused("already", *small())
    model, _ = small()
    refused("already", model, torch.optim.SGD(model.parameters(), 0.1))


def test_optimizers_that_are_not_of_pytorch_or_need_all_parameters_at_once() -> None:
    class Mine(torch.optim.SGD):
        pass

    model = mlp()
    refused("found .*LBFGS", model, torch.optim.LBFGS(model.parameters()))
    refused("found .*Mine", model, Mine(model.parameters(), 0.1))


def test_a_differentiable_step() -> None:
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), 0.1, differentiable=True)
    refused("differentiable=True", model, optimizer)


def test_what_was_replaced_on_the_object() -> None:
    model = mlp()
    optimizer = adamw(model.parameters())
    optimizer.step = lambda closure=None: None  # type: ignore[method-assign,assignment]
    refused("step was replaced", model, optimizer)
    replaced: Any = mlp()
    replaced.forward = lambda x: x
    refused("forward or a way of copying", replaced, adamw(replaced.parameters()))


def test_a_compiled_model() -> None:
    model = torch.compile(mlp(), backend="eager")
    refused("torch.compile", model, adamw(model.parameters()))  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "arguments",
    [
        lambda model: ("model", adamw(model.parameters())),
        lambda model: (model, model),
        lambda model: (model, adamw),
    ],
)
def test_types(arguments: Callable[[nn.Module], tuple[Any, ...]]) -> None:
    refused("found", *arguments(mlp()), error=TypeError)


def test_parameters_that_are_not_plain() -> None:
    class Special(nn.Parameter):
        pass

    model = mlp()
    model[0].weight = Special(torch.rand(16, 8))
    bias = model[0].bias
    refused("MixedPrecisionPolicy", model, adamw(model.parameters()), error=TypeError)
    assert bias.dtype == torch.float32
