"""Which tier ops take under "auto", by tables that the tests write. Nothing is learned."""

import pytest
import torch
from policy_costs import SetCosts
from tiers_taken import LARGE, calls, tiers_of

import xpurt
from xpurt import _C

KERNEL_WINS = (100.0, 10.0)
NATIVE_WINS = (10.0, 100.0)


def flat(us: tuple[float, float]) -> list[tuple[float, float, float]]:
    return [(1.0, *us)]


def test_the_table_decides(set_costs: SetCosts) -> None:
    set_costs(dear=KERNEL_WINS)
    assert calls("exp", 3) == {"sycl": 3}
    set_costs(dear=NATIVE_WINS)
    assert calls("exp", 3) == {"native": 3}


def test_an_explanation_compares_both_kernels(set_costs: SetCosts) -> None:
    set_costs(dear=NATIVE_WINS)
    x = torch.ones(LARGE, device="xpu")
    (row,) = xpurt.explain(x.exp)
    kernel, native = row.candidates
    assert (kernel.cost_us, native.cost_us) == pytest.approx((100, 10))
    assert row.chosen == native
    assert row.why == "predicted to finish first, by costs alone"
    assert "; the kernel on " in row.sentence
    assert " was expected to end after 100 us, and was never timed." in row.sentence


def test_a_class_does_not_decide_for_another(set_costs: SetCosts) -> None:
    set_costs(dear=KERNEL_WINS, cheap=NATIVE_WINS)
    assert calls("exp", 1) == {"sycl": 1}
    assert calls("neg", 1) == {"native": 1}


def test_below_the_floor_no_table_is_asked(set_costs: SetCosts) -> None:
    set_costs(dear=KERNEL_WINS)
    assert calls("exp", 2, size=1024) == {"native": 2}
    assert calls("exp", 2, size=1025) == {"sycl": 2}


@pytest.mark.usefixtures("on_cpu")
def test_between_points_and_beyond_them() -> None:
    points = [(1024.0, 1.0, 10.0), (4096.0, 4.0, 10.0), (16384.0, 16.0, 14.0)]
    _C.set_cost_curves(0, 0, [("dear", "f", "alike", points)])
    assert _C.testing.expected_costs(0, "dear", "f", "alike", 10) == (1, 10)
    native, kernel = _C.testing.expected_costs(0, "dear", "f", "alike", 2048) or (0, 0)
    assert (native, kernel) == pytest.approx((2, 10))
    beyond = _C.testing.expected_costs(0, "dear", "f", "alike", 163840)
    assert beyond == pytest.approx((160, 140))
    assert _C.testing.expected_costs(0, "sort", "f", "alike", 2048) is None
    assert calls("exp", 1, size=4096) == {"native": 1}
    assert calls("exp", 1, size=1 << 14) == {"sycl": 1}


@pytest.mark.usefixtures("on_cpu")
def test_types_and_layouts_have_their_own() -> None:
    _C.set_cost_curves(
        0,
        0,
        [
            ("cheap", "f", "alike", flat(KERNEL_WINS)),
            ("cheap", "f", "strided", flat(NATIVE_WINS)),
            ("cheap", "l", "alike", flat(NATIVE_WINS)),
        ],
    )
    x = torch.ones(256, 256, device="xpu")
    mixed = torch.ones(256, device="xpu")
    for operands, expected in (
        ((x, x), "sycl"),
        ((x, mixed), "sycl"),  # not measured: as those of one size
        ((x, x.t()), "native"),
        ((x.t(), x.t()), "sycl"),
        ((x[:, ::2], x[:, ::2]), "native"),
        ((x.half(), x.half()), "sycl"),  # not measured: as float32
        ((x.long(), x.long()), "native"),
        ((x.char(), x.char()), "native"),  # not measured: as int64
    ):
        _C.reset_op_report()
        torch.add(*operands)
        assert tiers_of("aten::add.Tensor") == {expected: 1}, operands[1].stride()


@pytest.mark.usefixtures("on_cpu")
@pytest.mark.parametrize(
    ("op", "dims", "expected"),
    [
        ("cumsum", (0,), "sycl"),
        ("cumsum", (1,), "sycl"),
        ("cumsum", (2,), "native"),
        ("cumsum", (-1,), "native"),
        ("sum", ((0, 1),), "sycl"),
        ("sum", ((0, -1),), "native"),
        ("sum", (), "native"),
        ("argmax", (0,), "sycl"),
        ("argmax", (), "native"),
        ("sort", (-2,), "sycl"),
    ],
)
def test_ops_across_lines_have_their_own(
    op: str, dims: tuple[object, ...], expected: str
) -> None:
    curves = [
        (cost_class, "f", layout, flat(costs))
        for cost_class in ("scan", "reduction", "extremes", "sort")
        for layout, costs in (("alike", NATIVE_WINS), ("across", KERNEL_WINS))
    ]
    _C.set_cost_curves(0, 0, curves)
    x = torch.rand(16, 32, 256, device="xpu")
    _C.reset_op_report()
    getattr(x, op)(*dims)
    taken = {row.tier for row in xpurt.op_report() if f"aten::{op}" in row.op}
    assert taken == {expected}


@pytest.mark.usefixtures("on_cpu")
@pytest.mark.parametrize(
    ("op", "shape", "dims", "expected"),
    [
        ("sum", (64, 512), (1,), "native"),
        ("sum", (64, 513), (1,), "sycl"),
        ("sum", (64, 513), (-1,), "sycl"),
        ("sum", (513, 64), (1,), "native"),
        ("sum", (513, 64), (0,), "native"),  # across, which was not measured
        ("sum", (8, 32, 32), ((1, 2),), "sycl"),
        ("sum", (8, 32, 32), ((2, -2),), "sycl"),
        ("sum", (8, 32, 32), (2,), "native"),
        ("sum", (1 << 14,), (0,), "native"),  # one line, as without dimensions
        ("argmax", (64, 1024), (1,), "sycl"),
        ("argmax", (64, 1024), (), "native"),
        ("softmax", (64, 1024), (1,), "sycl"),
        ("softmax", (64, 256), (1,), "native"),
    ],
)
def test_ops_along_long_lines_have_their_own(
    op: str, shape: tuple[int, ...], dims: tuple[object, ...], expected: str
) -> None:
    curves = [
        (cost_class, "f", layout, flat(costs))
        for cost_class in ("reduction", "extremes", "softmax")
        for layout, costs in (("alike", NATIVE_WINS), ("long", KERNEL_WINS))
    ]
    _C.set_cost_curves(0, 0, curves)
    x = torch.rand(shape, device="xpu")
    _C.reset_op_report()
    getattr(x, op)(*dims)
    taken = {row.tier for row in xpurt.op_report() if op in row.op}
    assert taken == {expected}


@pytest.mark.usefixtures("on_cpu")
@pytest.mark.parametrize(
    ("shape", "line", "expected"),
    [
        ((64, 512), (512,), "native"),
        ((64, 1024), (1024,), "onednn"),
        ((16, 32, 32), (32, 32), "onednn"),
        ((16, 32, 32), (32,), "native"),
    ],
)
def test_normalizations_of_long_lines_have_their_own(
    shape: tuple[int, ...], line: tuple[int, ...], expected: str
) -> None:
    curves = [
        ("line_norm", "f", layout, flat(costs))
        for layout, costs in (("alike", NATIVE_WINS), ("long", KERNEL_WINS))
    ]
    _C.set_cost_curves(0, 0, curves)
    x = torch.rand(shape, device="xpu", requires_grad=True)
    weight = torch.ones(line, device="xpu", requires_grad=True)
    _C.reset_op_report()
    y = torch.nn.functional.layer_norm(x, line, weight)
    y.backward(torch.ones_like(y))
    rows = xpurt.op_report()
    for op in ("native_layer_norm", "native_layer_norm_backward"):
        assert {row.tier for row in rows if row.op == f"aten::{op}"} == {expected}


@pytest.mark.usefixtures("on_cpu")
@pytest.mark.parametrize(
    ("training", "expected"), [(True, "onednn"), (False, "native")]
)
def test_training_of_batches_has_its_own(training: bool, expected: str) -> None:
    curves = [
        ("batch_norm", "f", layout, flat(costs))
        for layout, costs in (("alike", NATIVE_WINS), ("across", KERNEL_WINS))
    ]
    _C.set_cost_curves(0, 0, curves)
    x = torch.rand(4, 16, 32, 32, device="xpu")
    running = [torch.rand(16, device="xpu") for _ in range(2)]
    _C.reset_op_report()
    torch.nn.functional.batch_norm(x, *running, training=training)
    rows = xpurt.op_report()
    assert {r.tier for r in rows if r.op == "aten::native_batch_norm"} == {expected}


@pytest.mark.usefixtures("on_cpu")
def test_long_lines_are_like_short_ones_where_they_were_not_measured() -> None:
    curves = [
        ("reduction", "f", "alike", flat(KERNEL_WINS)),
        ("reduction", "f", "across", flat(NATIVE_WINS)),
    ]
    _C.set_cost_curves(0, 0, curves)
    assert _C.testing.expected_costs(0, "reduction", "f", "long", 1) == KERNEL_WINS


@pytest.mark.usefixtures("on_cpu")
def test_a_dimension_that_is_not_there_is_the_op_s_to_refuse() -> None:
    x = torch.rand(64, 1024, device="xpu")
    for dim in (2, -3, 1 << 40):
        with pytest.raises(IndexError, match="Dimension out of range"):
            x.sum(dim)


def test_products_count_their_multiply_adds(set_costs: SetCosts) -> None:
    points = [(2.0**20, 10.0, 20.0), (2.0**22, 40.0, 20.0)]
    _C.set_cost_curves(0, 0, [("matmul", "f", "alike", points)])
    row = torch.ones(1, 4096, device="xpu")
    square = torch.ones(256, 256, device="xpu")
    _C.reset_op_report()
    row @ row.t()  # 4,096 of them
    assert tiers_of("aten::mm") == {"native": 1}
    square @ square  # 16,777,216
    assert set(tiers_of("aten::mm")) & {"onednn", "sycl"}


def test_custom_kernels_and_other_rows_are_taken_where_they_win(
    set_costs: SetCosts,
) -> None:
    x = torch.rand(256, 256, device="xpu")
    for costs, expected in ((KERNEL_WINS, {"sycl"}), (NATIVE_WINS, {"native"})):
        set_costs(scan=costs, moments=costs)
        _C.reset_op_report()
        torch.testing.assert_close(x.cumsum(1).cpu(), x.cpu().cumsum(1))
        assert set(tiers_of("aten::cumsum")) == expected
        torch.testing.assert_close(x.var(1).cpu(), x.cpu().var(1))
        assert set(tiers_of("aten::var.correction")) == expected


def test_what_was_never_measured_is_native(set_costs: SetCosts) -> None:
    set_costs()
    assert calls("exp", 2) == {"native": 2}


def test_the_scheduler_decides_first_on_several_devices() -> None:
    with xpurt.xpu_mapping("AUTO") as placement, xpurt.kernel_policy("auto"):
        if len(placement.ordinals[0]) == 1:
            pytest.skip("one device")
        home = placement.homes[0]
        curve = ("dear", "f", "alike", [(1.0, *NATIVE_WINS)])
        _C.set_cost_curves(0, home, [curve])
        x = torch.ones(LARGE, device="xpu")
        with xpurt.prefer("CPU"):
            _C.reset_op_report()
            x.exp()
            assert tiers_of("aten::exp") == {"native": 1}
        with xpurt.prefer("GPU"):
            x.exp()
            assert tiers_of("aten::exp") == {"sycl": 1}
        del x
