"""Models of transformers and timm by torch.compile: training, and generation."""

import copy
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch._dynamo.utils import counters

import xpurt
from programs import test_timm, test_transformers
from programs.training_steps import Batch, losses

STEPS = 5
MADE: dict[str, Callable[[], tuple[Any, Batch, Any]]] = {
    **test_transformers.MADE,
    **test_timm.MADE,
}


@pytest.fixture(params=["auto", "sycl"])
def xpu_of_a_form(
    request: pytest.FixtureRequest, xpu: torch.device
) -> Iterator[torch.device]:
    """xpu under the mapping CPU in the native form and in the sycl form, and under the
    mapping GPU in the sycl form."""
    mapping = xpurt.get_xpu_mapping()
    if mapping not in ("CPU", "GPU") or (mapping, request.param) == ("GPU", "sycl"):
        pytest.skip("the forms are those of other mappings and policies")
    torch._dynamo.reset()
    with xpurt.kernel_policy(request.param):
        yield xpu
    torch._dynamo.reset()


@pytest.mark.filterwarnings("error:torch.compile runs op by op")
@pytest.mark.parametrize("name", MADE)
def test_training_compiled(name: str, xpu_of_a_form: torch.device) -> None:
    torch.manual_seed(0)
    model, batch, loss = MADE[name]()
    model.train()
    expected = losses(model, batch, loss, xpu_of_a_form, steps=STEPS)

    def compiled(backend: str) -> Callable[[torch.nn.Module, Batch], torch.Tensor]:
        torch._dynamo.reset()
        counters.clear()
        result: Any = torch.compile(loss, backend=backend)
        return result

    losses(model, batch, compiled("eager"), "cpu", steps=1)
    breaks_on_the_cpu = dict(counters["graph_break"])
    found = losses(model, batch, compiled("inductor"), xpu_of_a_form, steps=STEPS)
    assert dict(counters["graph_break"]) == breaks_on_the_cpu
    assert counters["stats"]["unique_graphs"] > 0
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.filterwarnings("error:torch.compile runs op by op")
def test_generation_with_a_static_cache(xpu_of_a_form: torch.device) -> None:
    torch.manual_seed(0)
    model, batch, _ = MADE["llama"]()
    tokens = batch["input_ids"].to(xpu_of_a_form)
    model = model.eval().to(xpu_of_a_form)
    options = {"max_new_tokens": 8, "do_sample": False, "pad_token_id": 0}
    expected = model.generate(tokens, **options)
    compiled = copy.copy(model)
    compiled.forward = torch.compile(model.forward)
    found = compiled.generate(tokens, cache_implementation="static", **options)
    assert torch.equal(found, expected)
