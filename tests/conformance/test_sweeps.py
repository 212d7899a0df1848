"""Sweeps: each made-up op has a fault that one of them finds, and samples of all ops."""

from dataclasses import replace

import pytest
import torch
from fake_database import entries

import xpurt
from xpurt_tools.conformance import SWEEPS, Settings
from xpurt_tools.conformance.known import Known, unknown_failures
from xpurt_tools.conformance.pairs import Pair
from xpurt_tools.conformance.pool import run_pairs
from xpurt_tools.conformance.report import failures
from xpurt_tools.conformance.results import Result
from xpurt_tools.conformance.sweeps.arguments import wrong_calls
from xpurt_tools.conformance.sweeps.empties import emptied_calls
from xpurt_tools.conformance.worker import check_sweep

ENTRIES = {entry.name: entry for entry in entries()}


def checked(sweep: str, name: str) -> Result:
    settings = Settings(database="fake_database:entries", sweep=sweep)
    return check_sweep(Pair(name, "float32", "made up"), settings)


@pytest.mark.parametrize("sweep", ["arguments", "dtypes", "empties"])
def test_a_right_op_passes(sweep: str, xpu: torch.device) -> None:
    result = checked(sweep, "right_of_three")
    assert result.status == "passed", result.failures
    assert sum(result.trials.values()) > 4


@pytest.mark.parametrize(
    ("sweep", "name", "variant", "said"),
    [
        ("empties", "divides_by_the_count", "0.dim0", "xpu:0 raised ZeroDivisionError"),
        ("empties", "lays_empty_out_otherwise", "0.dim1", "has strides"),
        ("arguments", "takes_any_count", "0=-1", "the CPU raised ValueError (count)"),
        ("arguments", "overlapping", "in-place.expanded", "xpu:0 gave a result"),
        ("arguments", "mixes_devices", "device.2", "xpu gave a result"),
        ("dtypes", "ignores_a_wider_operand", "2=float64", "dtype torch.float32, not"),
        ("dtypes", "lacks_integers", "2=int64", "'Long'), xpu:0 gave a result"),
    ],
)
def test_a_fault_is_found(
    sweep: str, name: str, variant: str, said: str, xpu: torch.device
) -> None:
    result = checked(sweep, name)
    assert result.status == "failed"
    assert variant in result.failed_variants
    assert any(said in failure.message for failure in result.failures)


def test_complex32_that_the_cpu_lacks_is_no_fault(xpu: torch.device) -> None:
    result = checked("dtypes", "lacks_complex32")
    assert result.status == "passed", result.failures
    assert result.trials["stock"] > 0


@pytest.mark.mappings("GPU", "AUTO")
def test_a_wide_result_of_integers_is_as_exact_as_float32(xpu: torch.device) -> None:
    settings = Settings(sweep="dtypes", samples_per_pair=1)
    with xpurt.kernel_policy("sycl"):
        result = check_sweep(Pair("fft.ihfft2", "int64", "fft"), settings)
    assert result.status == "passed", result.failures


@pytest.mark.rest
def test_a_crash_fails_its_call_and_the_others_run(fake: Settings) -> None:
    settings = replace(fake, sweep="empties")
    (result,) = run_pairs([Pair("ends_if_empty", "float32", "made up")], settings)
    assert result.status == "crashed"
    assert set(result.failed_variants) == {"0.dim0"}
    assert "SIGSEGV" in result.failures[0].message
    # The second dimension empty; where the CPU's own kernel ends the process there is
    # nothing to compare.
    assert (result.trials["values"], result.trials["crashed on the CPU"]) == (1, 1)


def test_each_dimension_is_empty_in_turn_and_together() -> None:
    inputs = torch.ones(2, 3), (torch.ones(3, 5), 7), {}
    found = dict(emptied_calls(inputs))
    assert list(found) == [
        *("0.dim0", "0.dim1", "1.dim0", "1.dim1"),
        "0.dim1+1.dim0",
        "0.dim0+1.dim0",
        "0.dim1+1.dim1",
        "0.dim0+0.dim1+1.dim0+1.dim1",
    ]
    x, (other, seven), _ = found["0.dim1+1.dim0"]
    assert (x.shape, other.shape, seven) == ((2, 0), (0, 5), 7)


def test_each_argument_is_wrong_in_turn() -> None:
    inputs = torch.ones(2), ([1, 2], True, "mean"), {"dim": 1}
    found = dict(wrong_calls(inputs, numbers_alone=False))
    assert found["dim=-1"][2] == {"dim": -1}
    assert found["0[1]=0"][1] == ([1, 0], True, "mean")
    assert found["0=shorter"][1] == ([1], True, "mean")
    assert found["1=False"][1] == ([1, 2], False, "mean")
    assert found["2=no_such"][1] == ([1, 2], True, "no_such")
    assert found["input.last=2.0"][0].tolist() == [1, 2]
    narrow = dict(wrong_calls(inputs, numbers_alone=True))
    assert list(narrow) == [
        f"dim={value}" for value in (0, -1, -2, 300, -300, 2**40, 2**62)
    ]


def test_an_entry_of_a_variant_excuses_no_other() -> None:
    result = Result("add", "float32", "pointwise", "failed")
    result.add_failure("0.dim0")
    entry = Known("*", "add", "*", "because", 1, variant="0.dim[01]")
    assert unknown_failures([result], [entry], "CPU") == []
    result.add_failure("out= resized")
    assert unknown_failures([result], [entry], "CPU") == [result]
    other = replace(entry, variant="out=_*")
    assert unknown_failures([result], [entry, other], "CPU") == []


# At least one op for each kind of row, and of each category of the summary.
SAMPLED = {
    "empties": (
        *("add", "sum", "nonzero", "topk", "cumsum", "cat", "gather", "bmm"),
        *("softmax", "nn.functional.layer_norm", "nn.functional.max_pool2d"),
        *("linalg.vector_norm", "special.erfcx", "masked.mean", "fft.fft"),
    ),
    "arguments": (
        *("add", "sum", "topk", "cumsum", "cat", "narrow", "clamp", "roll"),
        *("softmax", "nn.functional.layer_norm", "tril", "nn.functional.softplus"),
        *("nn.functional.max_pool2d", "nn.functional.avg_pool2d"),
        *("linalg.vector_norm", "special.zeta", "masked.mean", "fft.fft"),
    ),
    "dtypes": (
        *("add", "where", "pow", "atan2", "maximum", "gather", "bmm", "lerp"),
        *("nn.functional.prelu", "special.zeta", "nn.functional.mse_loss"),
    ),
}


@pytest.mark.mappings("CPU", "GPU")
def test_topk_of_a_number_is_a_number_for_any_k(xpu: torch.device) -> None:
    with xpurt.kernel_policy("sycl"):
        values, indices = torch.topk(torch.tensor(3.0, device=xpu), 0)
    assert (values.item(), indices.item()) == (3, 0)


@pytest.mark.one_in(3)
@pytest.mark.mappings("GPU")
@pytest.mark.parametrize("sweep", SAMPLED)
def test_a_sample_of_ops_is_right(sweep: str, xpu: torch.device) -> None:
    settings = Settings(
        sweep=sweep,
        ops=SAMPLED[sweep],
        dtypes=("float32",),
        samples_per_pair=2 if sweep == "empties" else 1,
    )
    with xpurt.kernel_policy("sycl"):
        results = [
            check_sweep(pair, settings) for pair in SWEEPS[sweep].pairs(settings)
        ]
    assert len(results) >= len(SAMPLED[sweep])
    assert all(result.trials for result in results)
    assert not failures(results), failures(results)
