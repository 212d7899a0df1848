"""Rows of optimized and quantized models, of training steps and of CPU kernels, with small
networks: that both sides compute the same, and are compared."""

from collections.abc import Iterator, Mapping
from dataclasses import replace

import pytest
import torch

import xpurt
from bench_command.made_up import LIMITS
from xpurt_tools.bench import processor
from xpurt_tools.bench.measure import measure
from xpurt_tools.bench.models import Case, Residual, mlp
from xpurt_tools.bench.networks import (
    Bottleneck,
    EncoderLayer,
    Inference,
    decoder,
    resnet,
)
from xpurt_tools.bench.report import suite_table
from xpurt_tools.bench.results import SuiteResult
from xpurt_tools.bench.row import Row, Suite, Unavailable, tensors_in
from xpurt_tools.bench.suites.cpu_kernels import kernel_row
from xpurt_tools.bench.suites.optimize import OPTIMIZE, beside_compiled, inference_rows
from xpurt_tools.bench.suites.optimize_train import training_rows
from xpurt_tools.bench.timing import Budget

SHORT = Budget(seconds=10, fewest=2, most=2)
CPU = torch.device("cpu")
TOLERANCES = {
    "f32": 1e-4,
    "bf16": 0.05,
    "autocast": 0.05,
    "int8": 0.1,
    "int8 weights": 0.03,
    "int4 weights": 0.3,
}


@pytest.fixture(autouse=True, scope="module")
def in_host_memory() -> Iterator[None]:
    """The mapping that the suites run under."""
    with xpurt.xpu_mapping("CPU"):
        yield


def images() -> Inference:
    return resnet(Residual, 64, (1,), side=16)


def wide_images() -> Inference:
    return resnet(Bottleneck, 64, (1,), side=16)


def tokens() -> Inference:
    return EncoderLayer(64, 2), torch.randn(1, 5, 64)


def token() -> Inference:
    return decoder(vocabulary=100, width=64, heads=2, layers=1)


def rows() -> dict[str, Row]:
    forms: Mapping[str, float | None] = dict.fromkeys(
        ("f32", "bf16", "autocast", "int8"), 1.0
    )
    weights = dict.fromkeys(("int8 weights", "int4 weights"), 1.0)
    made = [
        *inference_rows("images", images, forms),
        *inference_rows("bottleneck", wide_images, {"bf16": 1.0}),
        *inference_rows("tokens", tokens, forms),
        *inference_rows("token", token, weights),
    ]
    return {row.name: row for row in made}


ROWS = rows()


def result_of(row: Row, *, beside: bool) -> torch.Tensor:
    prepare = row.beside if beside else row.prepare
    assert prepare is not None
    (found,) = tensors_in(prepare(CPU).call())
    return found


@pytest.mark.one_in(4)
@pytest.mark.parametrize("name", ROWS)
def test_an_optimized_model_computes_what_the_stock_one_does(name: str) -> None:
    row = ROWS[name]
    form, kind = name.removesuffix(" tensors").split(" ", 1)[1].split(", ")
    try:
        found = result_of(row, beside=False)
    except Unavailable as reason:
        assert (form, kind) == ("bf16", "cpu")
        pytest.skip(str(reason))
    wanted = result_of(row, beside=True)
    assert (found.device.type, wanted.device.type) == (kind, "cpu")
    assert wanted.dtype == torch.float32
    error = (found.cpu().float() - wanted).norm() / wanted.norm()
    assert error < TOLERANCES[form]
    # What is less exact is what is named.
    assert form == "f32" or error > 1e-5


@pytest.mark.parametrize(
    "name", ["images int8, cpu tensors", "token int4 weights, cpu tensors"]
)
def test_a_row_is_measured(name: str) -> None:
    found = measure(ROWS[name], SHORT)
    assert not found.error
    assert found.processor is not None
    assert found.flops > 0


@pytest.mark.parametrize("kind", ["cpu", "xpu"])
def test_a_training_step_is_that_of_the_stock_model(kind: str) -> None:
    cases: list[Case] = []
    before: list[torch.Tensor] = []

    def small() -> Case:
        cases.append(mlp(4))
        before[:] = [each.detach().clone() for each in cases[-1].model.parameters()]
        return cases[-1]

    rows = {row.name: row for row in training_rows("MLP", small, 1.0)}
    row = rows[f"MLP step bf16, {kind} tensors"]
    assert row.beside is not None
    row.beside(CPU).call()
    row.prepare(CPU).call()
    stock, optimized = (case.model for case in cases)
    assert {each.dtype for each in optimized.parameters()} == {torch.bfloat16}
    assert {each.device.type for each in optimized.parameters()} == {kind}
    after = [each.cpu() for each in optimized.state_dict().values()]
    wanted = [each.detach() for each in stock.parameters()]
    for initial, one, other in zip(before, wanted, after, strict=True):
        step = (one - initial).norm()
        assert step > 0
        assert (other - one).norm() < 0.2 * step


@pytest.mark.slow  # stock PyTorch compiles the network: half a minute
def test_the_row_beside_stock_compile() -> None:
    row = beside_compiled("images", images, 1.3)
    found, wanted = result_of(row, beside=False), result_of(row, beside=True)
    assert (found.device.type, wanted.device.type) == ("xpu", "cpu")
    assert wanted.dtype == torch.bfloat16
    error = (found.cpu().float() - wanted.float()).norm() / wanted.float().norm()
    assert error < 0.05


def test_a_row_of_cpu_kernels_computes_in_both_modes() -> None:
    seen: list[str] = []

    def op(x: torch.Tensor) -> torch.Tensor:
        seen.append(xpurt.get_cpu_kernels())
        return x.tanh()

    row = kernel_row("tanh", op, torch.float32, 0.5, (128, 128))
    before = xpurt.get_cpu_kernels()
    found, wanted = result_of(row, beside=False), result_of(row, beside=True)
    assert seen == sorted(seen)
    assert set(seen) == {"auto", "native"}
    assert xpurt.get_cpu_kernels() == before
    torch.testing.assert_close(found, wanted)


def test_a_row_of_cpu_kernels_wants_a_cpu_behind_xpu() -> None:
    row = kernel_row("tanh", torch.tanh, torch.float32, 0.5, (128, 128))
    with xpurt.xpu_mapping("GPU"):
        assert measure(row, SHORT).error.startswith('not here: CPU kernels "auto" want')


@pytest.mark.parametrize("amx", [True, False])
def test_a_limit_is_that_of_the_processor(
    amx: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = {"amx_bf16": amx, "amx_int8": amx}
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: found)
    assert processor.at_most(with_amx=0.15, without=0.7) == (0.15 if amx else 0.7)
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: {"amx_bf16": True})
    assert not processor.has_amx()


def test_every_row_has_a_limit() -> None:
    assert [row.name for row in OPTIMIZE.rows if row.at_most is None] == []


OTHERS = [
    (form, name)
    for form in ("f32", "bf16", "int8", "int8 weights", "int4 weights")
    for name in ROWS[
        f"{'token' if 'weights' in form else 'images'} {form}, xpu tensors"
    ].others
]


@pytest.mark.parametrize(("form", "name"), OTHERS)
def test_other_libraries_compute_the_same(form: str, name: str) -> None:
    network = "token" if "weights" in form else "images"
    row = ROWS[f"{network} {form}, xpu tensors"]
    try:
        call, finish = row.others[name]()
    except ImportError as error:
        pytest.skip(f"{name} wants {error.name}, which is not installed")
    result = call()
    finish()
    found = (
        result
        if isinstance(result, torch.Tensor)
        else torch.from_numpy(result[0].copy())
    )
    wanted = result_of(row, beside=True)
    assert (found - wanted).norm() / wanted.norm() < TOLERANCES[form]


def test_a_library_that_is_missing_is_named() -> None:
    def absent() -> tuple[object, object]:
        raise ImportError("no such thing", name="onnxscript")

    row = ROWS["token int8 weights, cpu tensors"]
    other = {"ONNX Runtime": absent}
    found = measure(replace(row, others=other), SHORT)  # type: ignore[arg-type]
    assert not found.error
    suite = Suite("made-up", "nothing real", target=1.0, rows=(row,))
    lines = suite_table(SuiteResult(suite, (found,)), LIMITS).splitlines()
    assert lines[-1] == "ONNX Runtime: not installed (onnxscript)"
    assert "xpu/ONNX Runtime" not in lines[1]
