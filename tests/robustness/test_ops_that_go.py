"""Ops that are defined, used and removed: a later one may have the same address in
memory."""

import gc

import pytest
import torch


def test_what_is_known_of_an_op_goes_with_it(xpu: torch.device) -> None:
    x = torch.ones(2, device=xpu)
    for turn in range(30):
        name = f"op_{turn}"
        more = "".join(f", Tensor y{i}" for i in range(turn % 3))
        with torch.library._scoped_library("test_xpurt_gone", "DEF") as library:
            library.define(f"{name}(Tensor x{more}) -> Tensor")
            op = getattr(torch.ops.test_xpurt_gone, name)
            with pytest.raises(NotImplementedError, match=f"test_xpurt_gone::{name}"):
                op(x, *[x] * (turn % 3))
            del op
            delattr(torch.ops.test_xpurt_gone, name)
        gc.collect()
