"""Models of timm and transformers in training, before and after `xpurt.optimize`: the
losses of five steps."""

import copy
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.optim import Optimizer

import xpurt
from programs.optimized_models import IMAGE_MODELS, LANGUAGE_MODELS, made

STEPS = 5
RATE = 1e-3
# With random weights the norm of its gradient is 1340; those of the others are 6 to 25.
RATES = {"efficientnet_b0": 1e-6}
# AdamW divides by the size of a gradient, so rounding in an element near 0 is a whole
# step; with 2 images per batch norm it grows from step to step.
SGD_FOR = tuple(IMAGE_MODELS)

# densenet121 computes what ResNets do, and takes the longest.
NAMES = [name for name in (*IMAGE_MODELS, *LANGUAGE_MODELS) if name != "densenet121"]


def trained(name: str, kind: str) -> tuple[nn.Module, Any]:
    """The model for training, without randomness, and its batch."""
    model, sample = made(name)
    for each in model.modules():
        for rate in ("p", "drop_prob", "dropout", "attention_dropout"):
            if isinstance(vars(each).get(rate), float):
                setattr(each, rate, 0.0)
    if isinstance(sample, dict):
        return model.to(kind).train(), {k: x.to(kind) for k, x in sample.items()}
    return model.to(kind).train(), tuple(x.to(kind) for x in sample)


def optimizer_of(name: str, model: nn.Module) -> Optimizer:
    rate = RATES.get(name, RATE)
    if name in SGD_FOR:
        return torch.optim.SGD(model.parameters(), rate, momentum=0.9)
    return torch.optim.AdamW(model.parameters(), rate)


def loss_of(model: nn.Module, sample: Any) -> Tensor:
    """Of values that are far from the model's: their distance falls with each step."""
    if isinstance(sample, dict):
        found = model(**sample, use_cache=False, return_dict=True)[0]
    else:
        found = model(*sample)
    wanted = torch.linspace(-1, 1, found.numel()).reshape(found.shape)
    return (found.float() - wanted.to(found.device)).square().mean()


def losses(
    model: nn.Module, optimizer: Optimizer, sample: Any, *, autocast: bool = False
) -> Tensor:
    kind = next(model.parameters()).device.type
    found = []
    for _ in range(STEPS):
        optimizer.zero_grad()
        with torch.autocast(kind, dtype=torch.bfloat16, enabled=autocast):
            loss = loss_of(model, sample)
        loss.backward()
        optimizer.step()
        found.append(loss.item())
    return torch.tensor(found)


@pytest.mark.parametrize("kind", ["cpu", "xpu"])
@pytest.mark.parametrize("name", NAMES)
def test_losses(name: str, kind: str) -> None:
    model, sample = trained(name, kind)

    def run(dtype: torch.dtype | None) -> tuple[Tensor, nn.Module]:
        each = copy.deepcopy(model)
        optimizer = optimizer_of(name, each)
        each, optimizer = xpurt.optimize(each, optimizer=optimizer, dtype=dtype)
        return losses(each, optimizer, sample), each

    def plain(*, autocast: bool) -> Tensor:
        each = copy.deepcopy(model)
        return losses(each, optimizer_of(name, each), sample, autocast=autocast)

    expected = plain(autocast=False)
    assert expected[-1] < expected[0]
    same, _ = run(None)
    torch.testing.assert_close(same, expected, rtol=1e-4, atol=1e-5)

    found, lower = run(torch.bfloat16)
    weights = [p for p in lower.parameters() if p.dtype == torch.bfloat16]
    assert len(weights) > (1 if name == "gpt2" else 10)  # it has embeddings alone
    by_autocast = plain(autocast=True)
    # Of the result, which is in bfloat16 where autocast has some in float32.
    of_result = torch.finfo(torch.bfloat16).eps / 2 * expected.max()
    rounding = (by_autocast - expected).abs().max() + of_result
    assert (found - expected).abs().max() < 2 * rounding
    state = lower.state_dict()
    assert state.keys() == model.state_dict().keys()
    assert all(state[key].dtype == x.dtype for key, x in model.state_dict().items())
