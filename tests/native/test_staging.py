"""Ops on copies, where the host cannot read the device's memory."""

from collections.abc import Iterator

import pytest
import torch
from own_process import output

import xpurt
from xpurt import _C

pytestmark = pytest.mark.mappings("CPU")


@pytest.fixture
def unreadable(xpu: torch.device) -> Iterator[torch.device]:
    """A device that is treated as one whose memory the host cannot read."""
    if xpurt.get_xpu_mapping() != "CPU":
        pytest.skip("the CPU device is turned into one; others are one, or many")
    _C.testing.set_host_accessible(0, False)
    yield xpu
    _C.testing.set_host_accessible(0, True)


def copied(op: str) -> int:
    rows = [r for r in xpurt.op_report().rows if r.op == op]
    assert [r.tier for r in rows] == ["copy"]
    return rows[0].bytes_copied


def test_views_are_copied_once_and_only_as_far_as_they_reach(
    unreadable: torch.device,
) -> None:
    base = torch.arange(1024.0, device=unreadable)
    xpurt.op_report(reset=True)
    result = base[16:32] + base[24:40]
    # 24 floats from the one storage, and the 16 of the result.
    assert copied("aten::add.Tensor") == (24 + 16) * 4
    assert result.tolist() == [float(i + i + 8) for i in range(16, 32)]


def test_what_an_op_writes_is_copied_back(unreadable: torch.device) -> None:
    base = torch.zeros(4, 4, device=unreadable)
    base[1:, ::2].add_(1)
    assert base.cpu().sum() == 6
    assert base[0].tolist() == [0, 0, 0, 0]


def test_running_statistics_are_copied_back(unreadable: torch.device) -> None:
    mean, var = torch.zeros(2, device=unreadable), torch.ones(2, device=unreadable)
    source = torch.full((4, 2), 3.0, device=unreadable)
    torch.nn.functional.batch_norm(source, mean, var, training=True)
    torch.testing.assert_close(mean.cpu(), torch.full((2,), 0.3))


def test_a_view_that_an_op_returns_shares_the_storage(unreadable: torch.device) -> None:
    base = torch.arange(64.0, device=unreadable)[32:]
    sparse = base.to_sparse()
    assert sparse.values().device == unreadable
    seen = torch.ops.aten.split_with_sizes(base, [8, 24])[1]
    assert seen.data_ptr() == base.data_ptr() + 8 * 4


def test_copying_can_be_forbidden(unreadable: torch.device) -> None:
    tensor = torch.arange(3.0).to(unreadable)
    _C.set_fallback_mode("error")
    with pytest.raises(xpurt.errors.FallbackError, match="XPURT_FALLBACK"):
        tensor.cumsum(0)
    assert tensor.cpu().tolist() == [0, 1, 2]


def test_copying_is_warned_of_once_per_op() -> None:
    # In a process of its own: here the warning may have been given before.
    code = """
        import warnings
        import torch, xpurt
        from xpurt import _C
        xpurt.set_xpu_mapping("CPU")
        t = torch.arange(3.0).to("xpu")
        _C.set_kernel_policy("native")
        _C.testing.set_host_accessible(0, False)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            for _ in range(3):
                t.cumsum(0)
        print(sum("aten::cumsum" in str(w.message) for w in caught))
    """
    assert output(code) == "1"
