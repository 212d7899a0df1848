"""Ops that are run by torch.compile: a sample of them, and what counts as wrong."""

from dataclasses import replace

import pytest

from xpurt_tools.conformance import KNOWN_FAILURES_COMPILED, Settings, run_conformance
from xpurt_tools.conformance.pairs import Pair
from xpurt_tools.conformance.pool import run_pairs

SAMPLED = Settings(
    dtypes=("float32",),
    samples_per_pair=1,
    jobs=2,
    gpu_types="not",
    compiled=True,
    known_failures=KNOWN_FAILURES_COMPILED,
)
NATIVE = replace(SAMPLED, policy="native")
SYCL = replace(SAMPLED, policy="sycl")


@pytest.mark.rest
def test_what_is_wrong_when_compiled_fails(fake: Settings) -> None:
    names = ("right", "wrong_if_compiled", "wrong_if_compiled_anywhere", "wrong_by_one")
    wanted = [Pair(name, "float32", "made up") for name in names]
    right, wrong, stock, eager = run_pairs(
        wanted, replace(fake, compiled=True, samples_per_pair=1)
    )
    assert right.status == "passed"
    assert right.tiers["compiled"] >= 1
    assert (wrong.status, eager.status) == ("failed", "failed")
    assert not stock.counts
    assert stock.trials == {"stock": 1}


@pytest.mark.parametrize(
    "settings",
    [
        replace(NATIVE, sample=200),
        replace(SYCL, sample=120),
        pytest.param(NATIVE, marks=pytest.mark.slow),
        pytest.param(SYCL, marks=pytest.mark.slow),
        pytest.param(
            replace(SYCL, mapping="GPU", virtual_gpu="strict", sample=4),
            marks=pytest.mark.slow,
        ),
    ],
    ids=lambda settings: f"{settings.label} 1 of {settings.sample}",
)
@pytest.mark.slow
def test_a_sample_of_compiled_ops_is_right(
    settings: Settings, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_conformance([settings]) == 0, capsys.readouterr().out
