"""Ops that Inductor calls as in eager mode."""

import pytest
from own_process import compiling_output

EMBEDDING = """
import torch
from torch import nn
torch.manual_seed(0)
model = nn.Sequential(nn.Embedding(7, 4), nn.Linear(4, 1))
words = torch.tensor([[1, 2, 6], [0, 2, 2]])
model(words).sum().backward()
wanted = model[0].weight.grad.clone()
model.zero_grad()
import xpurt
model.to("xpu")
torch.compile(model)(words.to("xpu")).sum().backward()
torch.testing.assert_close(model[0].weight.grad.cpu(), wanted)
print("the same")
"""


@pytest.mark.rest
def test_an_embedding_trains_where_inductor_was_imported_before_xpurt() -> None:
    assert compiling_output(EMBEDDING) == "the same"
