"""A crash or a hang costs one pair, not the run."""

from dataclasses import replace

import pytest

from xpurt_tools.conformance import Settings, WorkersFailed
from xpurt_tools.conformance.pairs import Pair
from xpurt_tools.conformance.pool import environment, run_pairs


def pair(name: str) -> Pair:
    return Pair(name, "float32", "made up")


@pytest.mark.rest
def test_a_crash_costs_one_pair_and_names_the_signal(fake: Settings) -> None:
    wanted = [pair("right"), pair("aborts"), pair("wrong_by_one"), pair("right")]
    first, crash, wrong, last = run_pairs(wanted, fake)
    assert (first.status, last.status) == ("passed", "passed")
    assert wrong.status == "failed"
    assert crash.status == "crashed"
    (failure,) = crash.failures
    assert failure.variant == "call, sample 0"
    assert "SIGABRT" in failure.message
    assert "in aborts" in failure.message  # the Python stack, by faulthandler


@pytest.mark.slow
def test_a_hang_costs_one_pair_and_shows_where(fake: Settings) -> None:
    wanted = [pair("sleeps"), pair("right")]
    hang, right = run_pairs(wanted, replace(fake, timeout_s=8))
    assert hang.status == "hung"
    (failure,) = hang.failures
    assert "no answer after 8 s" in failure.message
    assert "in sleeps" in failure.message
    assert right.status == "passed"


@pytest.mark.rest
def test_a_device_that_is_not_there_ends_the_run(fake: Settings) -> None:
    settings = replace(fake, mapping="GPU", virtual_gpu="off")
    with pytest.raises(WorkersFailed, match='mapping "GPU" wants a GPU'):
        list(run_pairs([pair("right")], settings))


def test_workers_get_the_mapping_the_policy_and_one_thread_each() -> None:
    env = environment(
        Settings(mapping="AUTO", policy="sycl", virtual_gpu="strict", jobs=2)
    )
    assert env["XPURT_MAPPING"] == "AUTO"
    assert env["XPURT_KERNEL_POLICY"] == "sycl"
    assert env["XPURT_VIRTUAL_GPU"] == "strict"
    assert env["OMP_NUM_THREADS"] == "1"
