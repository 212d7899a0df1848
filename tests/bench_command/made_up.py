"""Suites and results that no device made."""

from xpurt.reports import Machine
from xpurt_tools.bench.limits import Limits
from xpurt_tools.bench.results import OtherResult, RowResult, SuiteResult
from xpurt_tools.bench.row import LARGE, Reach, Suite
from xpurt_tools.bench.timing import Ratio

LIMITS = Limits(
    triad=20.0,
    triad_cpu=18.0,
    triad_xpu=20.0,
    onednn_f32=400.0,
    onednn_bf16=800.0,
    stock_f32=200.0,
)
MACHINE = Machine(
    processor="a processor",
    cores=2,
    threads=2,
    devices=("a device (opencl, driver 1.0)",),
    mapping="CPU",
    policy="auto",
    torch="2.13.0",
    xpurt="0.1.0",
    dpctl="0.22.1",
    onednn="2026.1.0",
    python="3.11.7",
    system="Linux 6",
    date="2026-01-31",
    load=0.1,
)


def suite(name: str = "made-up", **options: object) -> Suite:
    given = {"about": "nothing real", "target": 1.0, "rows": ()} | options
    return Suite(name, **given)  # type: ignore[arg-type]


def ratio(value: float) -> Ratio:
    return Ratio(value, value - 0.1, value + 0.1)


FAST = RowResult(
    "fast",
    cpu_s=2e-3,
    xpu_s=1e-3,
    ratio=ratio(0.5),
    neutral=ratio(0.8),
    tiers={"sycl": 1},
    size_bytes=10_000_000,
    elements=LARGE,
)
SLOW = RowResult(
    "slow",
    cpu_s=1e-3,
    xpu_s=2e-3,
    ratio=ratio(2.0),
    neutral=ratio(2.0),
    tiers={"native": 12, "sycl": 3},
    flops=400_000_000,
    elements=LARGE,
    others={"dpnp": OtherResult(seconds=4e-3, ratio=ratio(0.5))},
)
FAILED = RowResult("failed", error="RuntimeError: no such kernel")


def results(**options: object) -> SuiteResult:
    options.setdefault("reach", Reach("triad", 0.85, "fast"))
    return SuiteResult(suite(**options), (FAST, SLOW, FAILED))  # type: ignore[arg-type]
