"""The category of dtypes that an op has on GPUs and not on PyTorch's CPU."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from fake_database import entries

from xpurt_tools.conformance import Settings, run_conformance
from xpurt_tools.conformance.databases import Entry
from xpurt_tools.conformance.gpu_types import CATEGORY, ORACLE_TYPES, wide_oracle
from xpurt_tools.conformance.pairs import Pair, gpu_pairs, pairs
from xpurt_tools.conformance.results import Result
from xpurt_tools.conformance.worker import check

ENTRIES = {entry.name: entry for entry in entries()}
HALF = torch.float16


def checked(name: str) -> Result:
    return check(ENTRIES[name], "float16", None, lambda where: None)


def test_the_pairs_are_those_that_the_cpu_lacks() -> None:
    both = Entry("op", "both", "c", None, frozenset({HALF}))
    one = Entry("op", "one", "c", None, frozenset({torch.float32}), frozenset({HALF}))
    assert gpu_pairs([both, one]) == [Pair("one", "float16", CATEGORY)]
    assert pairs([both, one], ("float16",)) == [Pair("both", "float16", "c")]
    assert gpu_pairs([both, one], ("bfloat16",)) == []
    assert len(gpu_pairs([one] * 9, sample=4)) == 3


def test_the_oracle_is_the_wider_type_rounded() -> None:
    def body(x: torch.Tensor) -> torch.Tensor:
        assert x.dtype == torch.float32
        return x + 1e-4

    (found, error) = wide_oracle(HALF)(body, torch.ones(3, dtype=HALF))
    assert error is None
    assert found.dtype == HALF
    assert found.tolist() == [1.0, 1.0, 1.0]


@pytest.mark.parametrize(
    "given",
    [
        torch.ones(4, 6, dtype=HALF)[:, ::2],
        torch.ones(3, 1, dtype=HALF).expand(3, 5),
        torch.ones(3, 5, dtype=HALF).t(),
    ],
    ids=["gaps", "expanded", "transposed"],
)
def test_the_oracle_keeps_strides(given: torch.Tensor) -> None:
    found, _ = wide_oracle(HALF)(lambda x: (x, x.stride()), given)
    assert found[0].stride() == found[1] == given.stride()


def test_the_oracle_knows_what_no_complex_type_has_on_the_cpu() -> None:
    x = torch.tensor([1 + 1j, float("nan") + 1j])
    found, error = wide_oracle(torch.complex64)(torch.nansum, x)
    assert error is None
    assert found.item() == 1 + 1j


@pytest.mark.parametrize("dtype", ORACLE_TYPES)
def test_wider_types_hold_every_value(dtype: torch.dtype) -> None:
    for narrow, wide in ORACLE_TYPES[dtype].items():
        assert torch.promote_types(narrow, wide) == wide


def test_a_right_op_passes_that_the_cpu_refuses(xpu: torch.device) -> None:
    result = checked("only_on_gpus")
    assert result.status == "passed", result.failures
    assert result.trials == {"values": 6}
    assert result.category == CATEGORY


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("stays_wide", "dtype torch.float32, not torch.float16"),
        ("also_refused_on_xpu", "xpu:0 raised NotImplementedError"),
    ],
)
def test_a_wrong_op_fails(name: str, said: str, xpu: torch.device) -> None:
    result = checked(name)
    assert result.status == "failed"
    assert said in result.failures[0].message


CPU = Settings(gpu_types="only", jobs=2, sample=3, samples_per_pair=2)
GPU = replace(CPU, mapping="GPU", virtual_gpu="strict", sample=12)


@pytest.mark.rest
@pytest.mark.takes_minutes
@pytest.mark.parametrize(
    "settings",
    [
        CPU,
        # Devices for which kernels have to be built: minutes each.
        pytest.param(replace(CPU, policy="sycl"), marks=pytest.mark.slow),
        pytest.param(GPU, marks=pytest.mark.slow),
        pytest.param(replace(GPU, mapping="AUTO"), marks=pytest.mark.slow),
    ],
    ids=lambda settings: settings.label,
)
def test_a_sample_of_the_category_is_right(
    settings: Settings, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "out.json"
    code = run_conformance([settings], path)
    text = capsys.readouterr().out
    assert code == 0, text
    assert CATEGORY in text
    # PyTorch has 94 such pairs.
    assert json.loads(path.read_text())["pairs"] > 80 // settings.sample
