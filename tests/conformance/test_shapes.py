"""The sweep of shapes: what it covers, and a sample of it.

The whole sweep is a command: `python -m xpurt conformance --sweep shapes`.
"""

from collections import defaultdict
from pathlib import Path

import pytest
import torch

from xpurt import kernel_policy
from xpurt.kernels import ROWS
from xpurt_tools.conformance.record import Record
from xpurt_tools.conformance.sweeps import shapes, shapes_constants
from xpurt_tools.conformance.sweeps.shapes_calls import CALLS, NOT_SWEPT
from xpurt_tools.conformance.sweeps.shapes_cases import Call, Case, whole
from xpurt_tools.conformance.sweeps.shapes_covering import covering
from xpurt_tools.conformance.sweeps.shapes_operands import (
    FENCE,
    LAYOUTS,
    Operands,
    canary,
    fenced,
    is_intact,
)

# Calls whose kernels, taken together, have each template and each form of a loop.
SAMPLE = {
    "add", "mul, broadcast", "where", "row exp", "row addcdiv", "sum", "amax", "var",
    "sum of two dimensions",
    "softmax", "softmax backward", "cumsum", "max", "sort", "cat", "roll", "roll of all", "mm", "bmm", "_int_mm",
    "index_select", "index_add", "embedding backward", "arange", "uniform_", "normal_",
    "attention", "attention backward", "layer_norm", "layer_norm backward",
    "batch_norm backward", "group_norm", "nll_loss", "max_pool2d", "upsample bilinear 2d",
    "lstm cell", "adam", "rms_norm_add", "swiglu", "solve", "cholesky", "fft", "irfft",
}  # fmt: skip
KINDS: dict[str, list[Call]] = defaultdict(list)
for each in CALLS:
    if not each.compiled:
        KINDS[each.kind].append(each)


def sampled(kind: str) -> list[Call]:
    return [call for call in KINDS[kind] if call.name in SAMPLE]


def record() -> Record:
    return Record("", "", "", lambda where: None)


def test_every_row_has_a_call() -> None:
    named = {row.rstrip("_") for call in CALLS for row in call.rows}
    missing = {row.aten for row in ROWS if row.aten.rstrip("_") not in named}
    assert missing - NOT_SWEPT.keys() == set()
    assert NOT_SWEPT.keys() <= {row.aten for row in ROWS}


@pytest.mark.parametrize(
    ("folder", "name", "text"),
    [
        ("CSRC", "new.cpp", "constexpr int64_t kNew = 3 << 10;  // 7777"),
        ("CSRC", "new.h", "range = cover(device, sizes, 3072);"),
        ("TEMPLATES", "new.cl", "#define NEW 3072\nget_global_id(0) /* 7777 */"),
        ("GENERATORS", "new.py", '"""Not 7777."""\nNEW = 3072  # nor 7777'),
        ("GENERATORS", "new.py", 'line = f"j < {n} + 3072"'),
    ],
)
def test_a_new_constant_is_swept(
    folder: str,
    name: str,
    text: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
) -> None:
    request.addfinalizer(shapes_constants.constants.cache_clear)
    before = shapes_constants.constants()
    (tmp_path / name).write_text(text)
    place = tmp_path / name if folder == "GENERATORS" else tmp_path
    there = getattr(shapes_constants, folder)
    monkeypatch.setattr(shapes_constants, folder, [*there, place])
    shapes_constants.constants.cache_clear()
    new = set(shapes_constants.constants()) - set(before)
    assert new == {3072}
    (call,) = (each for each in CALLS if each.name == "sum")
    tried = {case["line"] for case in whole(call, shapes_constants.constants())}
    assert tried >= {3071, 3072, 3073, 6143, 6144, 6145, 3072 + 4}


def test_constants_of_steps_are_read() -> None:
    """The run with which a sort begins is in the text of its step alone."""
    assert {16, 64, 4096, 65536} <= set(shapes_constants.constants())


@pytest.mark.parametrize("layout", LAYOUTS)
def test_operands_have_nothing_but_fences_around_them(layout: str) -> None:
    made = fenced(torch.arange(24.0).view(2, 3, 4), layout, shift=1)
    whole = torch.empty(0).set_(made.untyped_storage())
    assert whole[:FENCE].isnan().all()
    assert whole[-FENCE:].isnan().all()
    inside = set(whole[~whole.isnan()].tolist())
    assert inside == set(made.flatten().tolist())
    if layout != "expanded":
        assert made.flatten().tolist() == list(range(24))


def test_a_result_has_canaries() -> None:
    made, whole = canary(torch.zeros(2, 3), torch.device("cpu"))
    made.fill_(1)
    assert is_intact(whole)
    whole[FENCE - 1] = 0
    assert not is_intact(whole)


def test_the_last_element_of_a_line_matters() -> None:
    new = Operands("contiguous", torch.float32, 0)
    x = new(4, 9, values="distinct", marks=1)
    assert x.argmax(1)[::2].tolist() == [8, 8]
    assert x.argmin(1)[1::2].tolist() == [8, 8]


def test_a_wrong_result_is_a_failure(xpu: torch.device) -> None:
    def wrong(x: torch.Tensor, d: int) -> torch.Tensor:
        return x.sum(d) + (x.device.type == "xpu")

    call = next(each for each in CALLS if each.name == "sum of two dimensions")
    found = record()
    bad = Call(**{**vars(call), "run": wrong})
    case = Case({"outer": 2, "line": 5, "inner": 3})
    shapes.run_case(call, case, torch.float32, found)
    assert found.result().failed == 0
    shapes.run_case(bad, case, torch.float32, found)
    assert found.result().failed == 1


@pytest.mark.one_in(2)
@pytest.mark.mappings("CPU")
@pytest.mark.parametrize("kind", KINDS)
def test_a_sample_by_covering(kind: str, xpu: torch.device) -> None:
    """Each constant's boundary with this kind of row, and each layout: the report of a
    failure names the sizes."""
    calls = sampled(kind)
    assert calls
    found, threads = record(), torch.get_num_threads()
    torch.set_num_threads(1)
    with kernel_policy("sycl"):
        cases = covering(calls, shapes_constants.constants())
        for number, (call, case) in enumerate(cases):
            dtype = getattr(torch, call.dtypes[0])
            # Every other case of a call has an out=.
            shapes.run_case(call, case, dtype, found, number // len(calls))
    torch.set_num_threads(threads)
    result = found.result()
    assert not result.failures, result.failures
    assert result.trials["values"] > 50
    # With AVX-512 all products of attention may be oneDNN's.
    assert result.tiers.get("sycl", 0) + result.tiers.get("onednn", 0) > 50
