"""Which tier ops take under "auto", by times of the running program."""

import pytest
import torch
from policy_costs import SetCosts
from tiers_taken import (
    LARGE,
    calls,
    calls_to_next_sample,
    is_learned,
    tier_in_use,
    tiers_of,
)

import xpurt
from xpurt import _C

KERNEL_WINS = (100.0, 10.0)
NATIVE_WINS = (10.0, 100.0)


def build_exp() -> None:
    """Runs the kernel, so that its build costs nothing in what follows."""
    with xpurt.kernel_policy("sycl"):
        calls("exp", 1)


@pytest.mark.usefixtures("learning")
def test_learning_finds_the_kernel_that_the_table_missed(set_costs: SetCosts) -> None:
    set_costs(dear=(100.0, 110.0))
    build_exp()
    _C.testing.set_learning_bias(1_000_000, 0)  # as if the native kernel took 1 s
    taken = calls("exp", 2_000)
    assert tier_in_use("aten::exp", 16) == "kernel"
    assert taken["native"] < taken["sycl"]


@pytest.mark.usefixtures("learning")
def test_learning_leaves_a_kernel_that_the_table_praised(set_costs: SetCosts) -> None:
    build_exp()
    set_costs(dear=(1_000.0, 1.0))
    _C.testing.set_learning_bias(10_000, 100_000)
    taken = calls("exp", 300)
    assert tier_in_use("aten::exp", 16) == "native"
    assert taken["sycl"] < 20


@pytest.mark.usefixtures("learning")
@pytest.mark.parametrize("tier", ["native", "kernel"])
def test_a_call_counts_once(set_costs: SetCosts, tier: str) -> None:
    """An unboxed op chooses the tier, and passes the choice on if it is the kernel."""
    set_costs(dear=(10.0, 1e6) if tier == "native" else (1e6, 10.0))
    _C.testing.set_learning_bias(*((0, 1e9) if tier == "native" else (1e9, 0)))
    for _ in range(500):
        calls("exp", 1)
        # A sample on new pages is discarded: the first calls may have taught nothing.
        if (
            is_learned("aten::exp")
            and tier_in_use("aten::exp", 16) == tier
            and calls_to_next_sample("aten::exp", 16) > 12
        ):
            break
    assert tier_in_use("aten::exp", 16) == tier
    before = calls_to_next_sample("aten::exp", 16)
    calls("exp", 5)
    assert before - calls_to_next_sample("aten::exp", 16) == 5


@pytest.mark.usefixtures("learning")
@pytest.mark.parametrize("op", ["copy_", "zero_"])
def test_a_call_that_is_no_copy_of_few_bytes_counts_once(
    set_costs: SetCosts, op: str
) -> None:
    """Strided tensors are refused by memcpy and memset, after the size was asked."""
    set_costs(cheap=(10.0, 1e6))
    _C.testing.set_learning_bias(0, 1e9)
    x = torch.ones(1 << 13, device="xpu")[::2]
    arguments = (torch.ones_like(x),) if op == "copy_" else ()
    for _ in range(500):
        getattr(x, op)(*arguments)
        if is_learned(f"aten::{op}") and calls_to_next_sample(f"aten::{op}", 12) > 12:
            break
    before = calls_to_next_sample(f"aten::{op}", 12)
    assert before > 12
    for _ in range(5):
        getattr(x, op)(*arguments)
    assert before - calls_to_next_sample(f"aten::{op}", 12) == 5


@pytest.mark.usefixtures("learning")
def test_what_was_forgotten_is_not_reported(set_costs: SetCosts) -> None:
    """Calls of the same size in another layout have a bucket of their own."""
    set_costs(dear=KERNEL_WINS)
    calls("exp", 10)
    x = torch.ones(2 * LARGE, device="xpu")[::2]
    _C.testing.forget_statistics()
    assert _C.testing.learned_calls() == []
    for _ in range(10):
        x.exp()
    assert [row[3] for row in _C.testing.learned_calls()] == ["strided"]


@pytest.mark.usefixtures("learning")
def test_a_new_table_forgets_what_was_learned(set_costs: SetCosts) -> None:
    set_costs(dear=KERNEL_WINS)
    calls("exp", 10)
    assert is_learned("aten::exp")
    set_costs(dear=NATIVE_WINS)
    assert not is_learned("aten::exp")
    calls("exp", 10)
    assert tier_in_use("aten::exp", 16) == "native"


@pytest.mark.usefixtures("learning")
def test_a_short_program_builds_nothing(set_costs: SetCosts) -> None:
    set_costs(special=(100.0, 99.0))
    before = _C.testing.built_kernels()
    assert calls("lgamma", 20) == {"native": 20}
    assert _C.testing.built_kernels() == before


@pytest.mark.usefixtures("learning")
def test_deterministic_mode_goes_by_the_table(set_costs: SetCosts) -> None:
    build_exp()
    set_costs(dear=(1_000.0, 1.0))
    _C.testing.set_learning_bias(0, 1e9)
    calls("exp", 300)
    assert tier_in_use("aten::exp", 16) == "native"
    torch.use_deterministic_algorithms(True)
    try:
        assert calls("exp", 300) == {"sycl": 300}
        assert calls("sinc", 300) == {"sycl": 300}
    finally:
        torch.use_deterministic_algorithms(False)
    assert not is_learned("aten::sinc")
    # When the other tier is tried again depends on times.
    assert calls("exp", 10).get("native", 0) > 5


@pytest.mark.usefixtures("learning")
def test_nothing_is_learned_while_a_graph_is_captured(set_costs: SetCosts) -> None:
    set_costs(dear=NATIVE_WINS)
    x = torch.ones(LARGE, device="xpu")
    graph = torch.xpu.XPUGraph()
    with torch.xpu.graph(graph):
        y = x.exp()
    graph.replay()
    assert y[0].item() == pytest.approx(2.71828, rel=1e-4)
    assert not is_learned("aten::exp")


def test_without_learning_nothing_is_timed(set_costs: SetCosts) -> None:
    set_costs(dear=NATIVE_WINS)
    calls("exp", 100)
    assert not is_learned("aten::exp")


@pytest.mark.usefixtures("learning")
def test_results_are_right_whichever_tier_is_tried(set_costs: SetCosts) -> None:
    set_costs(dear=(100.0, 50.0), cheap=(100.0, 50.0), reduction=(100.0, 50.0))
    _C.testing.set_learning_bias(50_000, 0)
    x = torch.linspace(0, 1, LARGE)
    expected = (x.exp() * 2 + x).sum()
    moved = x.to("xpu")
    for _ in range(40):
        found = (moved.exp() * 2 + moved).sum()
        torch.testing.assert_close(found.cpu(), expected)
    in_place = moved.clone()
    for _ in range(60):
        in_place.add_(1)
    torch.testing.assert_close(in_place.cpu(), x + 60)


@pytest.mark.usefixtures("learning")
def test_an_op_of_parts_is_compared_by_whole_calls(set_costs: SetCosts) -> None:
    """A variance takes 1.4 times as long by its parts as by PyTorch's kernel, which was
    timed under a load only. The pretended times are far longer than the calls."""
    x = torch.ones(64, 1024, device="xpu")
    with xpurt.kernel_policy("sycl"):
        x.var(1)  # builds
    set_costs(moments=(840_000.0, 390_000.0))

    def tiers(calls: int) -> dict[str, int]:
        xpurt.op_report(reset=True)
        for _ in range(calls):
            x.var(1)
        return tiers_of("aten::var.correction")

    _C.testing.set_learning_bias(840_000, 600_000)
    under_load = tiers(200)
    _C.testing.set_learning_bias(280_000, 390_000)
    after_it = tiers(300)
    assert under_load["sycl"] > 100
    assert after_it["native"] > 200
