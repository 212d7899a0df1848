"""oneDNN's primitives are kept, up to a bound."""

import pytest
import torch

from xpurt import _C, kernel_policy


@pytest.mark.mappings("CPU")
def test_the_same_product_is_made_once(xpu: torch.device) -> None:
    a = torch.ones(5, 7, device=xpu)
    with kernel_policy("sycl"):
        a @ a.T
        kept, most = _C.testing.onednn_plans(0)
        a @ a.T
        (a * 2) @ (a + 1).T
        assert _C.testing.onednn_plans(0) == (kept, most)
        a.T @ a
    assert _C.testing.onednn_plans(0) == (min(kept + 1, most), most)


@pytest.mark.mappings("CPU")
def test_no_more_are_kept_than_the_bound(xpu: torch.device) -> None:
    _, most = _C.testing.onednn_plans(0)
    row = torch.ones(1, most + 20, device=xpu)
    with kernel_policy("sycl"):
        sums = [(row[:, :n] @ row[:, :n].T) for n in range(1, most + 20)]
        assert _C.testing.onednn_plans(0) == (most, most)
        # A primitive that was dropped is made again.
        again = row[:, :3] @ row[:, :3].T
    assert [int(s.item()) for s in sums] == list(range(1, most + 20))
    assert again.item() == 3
