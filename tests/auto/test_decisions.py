"""AUTO's choice of a device for an op: by costs, by pending work, by its operands."""

from collections.abc import Iterator, Sequence

import pytest
import torch

import xpurt
from auto.choices import Choices, calls
from xpurt import _C
from xpurt.compiler.form_estimate import GraphWork
from xpurt.compiler.second_form import estimate_of


@pytest.fixture
def costs(choices: Choices) -> Iterator[Choices]:
    """Costs are those of a test; ops are kernels."""
    yield choices
    _C.set_deterministic(False)


def set_costs(
    choices: Choices, cpu_us: float, gpu_us: float, copy_us: float = 0
) -> None:
    times = {"cpu": cpu_us, "gpu": gpu_us}
    _C.set_device_costs(
        0, [(times[kind], 1e9, 1e9, copy_us, 1e9) for kind in choices.kinds]
    )


def test_a_graph_is_estimated_by_the_devices_beside_home(choices: Choices) -> None:
    rates = {"fast": (10.0, 1e9, 1e9, 10.0, 1e9), "slow": (10.0, 1.0, 1.0, 10.0, 1e9)}

    def kernels_us(**costs: str) -> float:
        _C.set_device_costs(0, [rates[costs[kind]] for kind in choices.kinds])
        return estimate_of(GraphWork(size_bytes=1e9), 0).kernels_us

    assert kernels_us(cpu="slow", gpu="fast") < 100 < kernels_us(cpu="fast", gpu="slow")


def kinds_of(choices: Choices, function) -> list[str]:
    """The kinds of the devices that the ops of a call ran on, fresh memory's fills
    apart."""
    names = {d.name: d.kind for d in xpurt.physical_devices()}
    rows = [row for row in xpurt.explain(function) if "fill" not in row.op]
    return [names[row.device] for row in rows]


def several(tensors: list[torch.Tensor]) -> list[torch.Tensor]:
    return [each.tanh() for each in tensors]


def test_what_is_pending_sends_independent_ops_to_the_other_device(costs) -> None:
    many = [torch.ones(2048, device="xpu") for _ in range(10)]
    torch.xpu.synchronize()
    set_costs(costs, 1e6, 1.6e6)
    kinds = kinds_of(costs, lambda: several(many))
    # 1.6 times as slow: it gets two of five.
    assert kinds.count("gpu") == 4
    assert kinds[0] == "cpu"


@pytest.mark.parametrize(("steps", "kind"), [(10, "gpu"), (100, "cpu")])
def test_a_layer_by_cells_costs_launches_for_each_step(
    steps: int, kind: str, costs: Choices
) -> None:
    """On the CPU oneDNN computes all steps of a layer at once."""
    layer = torch.nn.GRU(4, 5, device="xpu")
    x = torch.ones(steps, 2, 4, device="xpu")
    torch.xpu.synchronize()
    set_costs(costs, 1e5, 1e3)
    xpurt.op_report(reset=True)
    with torch.no_grad():
        layer(x)
    assert calls("xpurt::gru_layer", kind) == 1


def gradients(operands: Sequence[torch.Tensor]) -> object:
    backward = torch.ops.aten.convolution_backward
    return backward(
        *operands, None, [1, 1], [0, 0], [1, 1], False, [0, 0], 1, [True, True, False]
    )


def layer(operands: Sequence[torch.Tensor]) -> object:
    x, state, *weights = operands
    return torch.gru(x, state, weights, False, 1, 0.0, False, False, False)


@pytest.mark.parametrize(
    ("op", "function", "shapes"),
    [
        (
            "aten::convolution_backward_overrideable",
            gradients,
            [(2, 4, 6, 6), (2, 3, 8, 8), (4, 3, 3, 3)],
        ),
        ("xpurt::gru_layer", layer, [(3, 2, 4), (1, 2, 5), (15, 4), (15, 5)]),
    ],
    ids=["gradients", "layer"],
)
def test_the_ops_that_compute_a_call_run_where_it_runs(
    op, function, shapes, costs: Choices
) -> None:
    """The predicted time of the call is pending on its device. Decided for themselves,
    its ops would go to the other one."""
    operands = [torch.ones(shape, device="xpu") for shape in shapes]
    costs.gpu()
    with torch.no_grad():
        function(operands)  # builds the kernels
    torch.xpu.synchronize()
    set_costs(costs, 1e6, 0.8e6)
    with torch.no_grad():
        rows = list(xpurt.explain(lambda: function(operands)))
    names = {d.name: d.kind for d in xpurt.physical_devices()}
    ops = [row.op for row in rows]
    # What comes after it is no part of the call. A call follows its parts.
    kinds = [
        names[row.device] for row in rows[: ops.index(op) + 1] if "cat" not in row.op
    ]
    assert len(kinds) > 3
    assert set(kinds) == {"gpu"}


@pytest.mark.parametrize(("us", "kind"), [(150, "cpu"), (1500, "gpu")])
def test_operands_are_not_copied_for_a_short_op(us: int, kind: str, costs) -> None:
    """Unless the other device is the best one for the whole program."""
    large = torch.ones(1 << 18, device="xpu")
    small = torch.ones(2, device="xpu")
    torch.xpu.synchronize()
    of_each = {"cpu": (us, 1e9), "gpu": (us / 10, 1)}  # launch, bytes per microsecond
    _C.set_device_costs(
        0, [(*of_each[kind], 1e9, us / 10, 1e9) for kind in costs.kinds]
    )

    def two_ops() -> object:
        large.tanh()  # by this one the CPU is the best device alone
        return small.tanh()

    assert kinds_of(costs, two_ops) == ["cpu", kind]


def test_a_chain_stays_where_its_data_is(costs) -> None:
    x = torch.ones(2048, device="xpu")
    torch.xpu.synchronize()
    set_costs(costs, 1e6, 1.5e6, copy_us=1e6)

    def chain() -> torch.Tensor:
        y = x
        for _ in range(6):
            y = y.tanh()
        return y

    assert kinds_of(costs, chain) == ["cpu"] * 6


def test_a_chain_does_not_wait_behind_another_one(costs) -> None:
    a, b = (torch.ones(2048, device="xpu") for _ in range(2))
    torch.xpu.synchronize()
    set_costs(costs, 1e6, 1.1e6, copy_us=1e5)

    def two_chains() -> None:
        first, second = a, b
        for _ in range(5):
            first, second = first.tanh(), second.tanh()

    kinds = kinds_of(costs, two_chains)
    assert kinds == ["cpu", "gpu"] * 5


def test_both_operands_of_a_softmax_gradient_are_moved(costs) -> None:
    both = torch.ones(2048, device="xpu").view(64, 32)
    costs.gpu()
    grad = both + 1
    costs.cpu()
    output = both + 2
    torch.xpu.synchronize()
    set_costs(costs, 1e6, 1e6, copy_us=1e5)
    backward = torch.ops.aten._softmax_backward_data
    (row,) = xpurt.explain(lambda: backward(grad, output, 1, torch.float32))
    # The gradient is on the GPU only, and the output on the CPU only.
    assert {round(each.moves_us) for each in row.candidates} == {100_000}


def test_after_a_wait_nothing_is_pending(costs) -> None:
    x = torch.ones(2048, device="xpu")
    set_costs(costs, 1e6, 1.5e6)
    for _ in range(3):
        torch.xpu.synchronize()
        assert kinds_of(costs, lambda: x.tanh()) == ["cpu"]


def test_after_a_wait_nothing_is_pending_on_a_shared_queue(costs) -> None:
    """Other code may submit to the queue at any time, so the stream is never idle."""
    stream = torch.xpu.Stream()
    assert stream.sycl_queue
    with torch.xpu.stream(stream):
        x = torch.ones(2048, device="xpu")
        set_costs(costs, 1e6, 1.5e6)
        for _ in range(3):
            stream.synchronize()
            assert kinds_of(costs, lambda: x.tanh()) == ["cpu"]


def test_a_plan_does_not_look_at_the_clock(costs) -> None:
    many = [torch.ones(2048, device="xpu") for _ in range(10)]
    set_costs(costs, 1e6, 1.5e6)
    _C.set_deterministic(True)
    assert kinds_of(costs, lambda: several(many)) == ["cpu"] * 10
    set_costs(costs, 1.5e6, 1e6)
    assert kinds_of(costs, lambda: several(many)) == ["gpu"] * 10


def test_deterministic_algorithms_are_a_plan_too(costs) -> None:
    many = [torch.ones(2048, device="xpu") for _ in range(10)]
    set_costs(costs, 1e6, 1.5e6)
    torch.use_deterministic_algorithms(True)
    try:
        assert kinds_of(costs, lambda: several(many)) == ["cpu"] * 10
    finally:
        torch.use_deterministic_algorithms(False)


def test_equal_costs_stay_at_home(costs) -> None:
    x = torch.ones(2048, device="xpu")
    torch.xpu.synchronize()
    set_costs(costs, 100, 100)
    assert kinds_of(costs, lambda: x.tanh()) == ["cpu"]


@pytest.mark.parametrize("size", [1, 100])
def test_tiny_ops_stay_with_their_data(auto_mapping: None, size: int) -> None:
    x = torch.ones(size, device="xpu")
    (row,) = xpurt.explain(lambda: x + x)
    assert row.tier == "native"
    assert row.candidates == ()


def test_an_explanation_has_a_row_per_op(costs) -> None:
    x = torch.ones(2048, device="xpu")
    torch.xpu.synchronize()
    set_costs(costs, 100, 50, copy_us=20)
    found = xpurt.explain(lambda: x.tanh().exp())
    assert [row.op for row in found] == ["aten::tanh", "aten::exp"]
    first, second = found
    by_kind = dict(zip(costs.kinds, first.candidates, strict=False))
    assert first.why == "predicted to finish first, by costs alone"
    # 4 and 8 KiB at a byte per nanosecond are nothing.
    assert by_kind["cpu"].finish_us == pytest.approx(100, abs=1)
    assert by_kind["gpu"].moves_us == pytest.approx(20, abs=1)
    assert by_kind["gpu"].finish_us == pytest.approx(70, abs=1)
    assert dict(zip(costs.kinds, second.candidates, strict=False))["gpu"].moves_us == 0
    assert "20 copies + 50 work" in str(found)
    gpu, cpu = (
        next(d.name for d in xpurt.physical_devices() if d.kind == kind)
        for kind in ("gpu", "cpu")
    )
    assert first.chosen == by_kind["gpu"]
    assert first.sentence.startswith(
        f"aten::tanh (predicted to finish first, by costs alone): the kernel on {gpu} was expected to "
        "end after 70 us, and none of its calls was timed yet; "
    )
    assert f"; the kernel on {cpu} was expected to end after 100 us" in first.sentence
    assert first.sentence in str(found)
    assert found.result.shape == (2048,)


@pytest.mark.usefixtures("costs")
def test_an_explanation_has_what_came() -> None:
    x = torch.ones(2048, device="xpu")
    with xpurt.kernel_policy("native"):
        (row,) = xpurt.explain(x.tanh)
    assert row.measured_us is not None
    assert row.sentence.endswith(" us): the kernel policy is native.")
    assert ", and took " in row.sentence


def test_an_explanation_of_an_error_leaves_nothing_behind(costs) -> None:
    with pytest.raises(ZeroDivisionError):
        xpurt.explain(lambda: 1 / 0)
    assert _C.end_explaining(_C.begin_explaining()) == []


def test_an_explanation_within_an_explanation(costs) -> None:
    x = torch.ones(2048, device="xpu")
    inner = []

    def outer() -> None:
        x.tanh()
        inner.append(xpurt.explain(x.exp))
        x.sin()

    found = xpurt.explain(outer)
    assert [row.op for row in inner[0]] == ["aten::exp"]
    assert [row.op for row in found] == ["aten::tanh", "aten::exp", "aten::sin"]
    assert len(xpurt.explain(x.cos)) == 1


def test_a_report_has_a_row_per_device(costs) -> None:
    x = torch.ones(1 << 16, device="xpu")
    xpurt.op_report(reset=True)
    costs.gpu()
    y = x * 2
    assert y.sum().item() == 2 * (1 << 16)
    report = xpurt.op_report()
    kinds = {d.name: d.kind for d in xpurt.physical_devices()}
    rows = {kinds[row.device]: row for row in report.devices}
    assert rows["gpu"].ops >= 2
    # Operand there, and sum's result back.
    assert rows["gpu"].bytes_moved >= 4 * (1 << 16)
    assert "predicted ms" in str(report)


def test_a_report_has_what_the_choice_gained(costs) -> None:
    x = torch.ones(2048, device="xpu")
    kinds = {d.name: d.kind for d in xpurt.physical_devices()}

    def gained() -> dict[str, int]:
        report = xpurt.op_report(reset=True)
        rows = report.devices
        assert not rows or "gained ms" in str(report)
        return {kinds[row.device]: round(row.gained_ms) for row in rows}

    torch.xpu.synchronize()
    set_costs(costs, 1e6, 1.5e6)
    gained()
    x.tanh()
    assert gained() == {"cpu": 0}
    torch.xpu.synchronize()
    many = [torch.ones(2048, device="xpu") for _ in range(2)]
    torch.xpu.synchronize()
    gained()
    several(many)  # the GPU runs the second one, and ends before the CPU could have
    assert gained() == {"cpu": 0, "gpu": 500}


def test_shares_follow_the_speeds(costs) -> None:
    x = torch.ones(1 << 20, device="xpu")
    torch.xpu.synchronize()
    rates = {"cpu": 1000.0, "gpu": 3000.0}
    _C.set_device_costs(0, [(10, rates[k], 1e9, 0, 1e12) for k in costs.kinds])
    shares = dict(zip(costs.kinds, _C.partition_proportions([x], 0, 8e6), strict=True))
    assert shares["gpu"] == pytest.approx(0.75, abs=0.01)
    assert sum(shares.values()) == pytest.approx(1)


def test_what_does_not_pay_is_not_shared(costs) -> None:
    x = torch.ones(1 << 20, device="xpu")
    torch.xpu.synchronize()
    # Small: launches are all there is.
    _C.set_device_costs(0, [(1000, 1e3, 1e9, 0, 1e12) for _ in costs.kinds])
    assert _C.partition_proportions([x], 0, 1e3) == []
    # The copies of operands take longer than the work.
    _C.set_device_costs(0, [(10, 1e3, 1e9, 0, 10) for _ in costs.kinds])
    assert _C.partition_proportions([x], 0, 8e6) == []
    # A device that is a hundred times slower.
    rates = {"cpu": 1000.0, "gpu": 10.0}
    _C.set_device_costs(0, [(10, rates[k], 1e9, 0, 1e12) for k in costs.kinds])
    assert _C.partition_proportions([x], 0, 8e6) == []
