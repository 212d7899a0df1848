"""Results are right for every choice of AUTO, and for tensors that share memory."""

import random

import pytest
import torch
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from auto.choices import Choices
from auto.sequences import OPS, Run, Step

STEPS = st.builds(
    Step,
    op=st.integers(0, len(OPS) - 1),
    first=st.integers(0, 11),
    second=st.integers(0, 11),
    kind=st.sampled_from(["cpu", "gpu"]),
    stream=st.sampled_from([0, 0, 0, 1, 2]),
    share=st.sampled_from([0, 0, 0.3, 0.5]),
)

MANY = settings(
    max_examples=60,
    derandomize=True,
    phases=[Phase.generate, Phase.shrink],
    suppress_health_check=list(HealthCheck),
)


def play(choices: Choices, streams: list[torch.Stream], steps: list[Step]) -> None:
    run = Run(choices, streams)
    for step in steps:
        run.step(step)
    run.check()


@MANY
@given(steps=st.lists(STEPS, min_size=3, max_size=16))
def test_one_stream(choices: Choices, steps: list[Step]) -> None:
    play(choices, [torch.xpu.current_stream()], steps)


@MANY
@given(steps=st.lists(STEPS, min_size=3, max_size=16))
def test_several_streams(
    choices: Choices, streams: list[torch.Stream], steps: list[Step]
) -> None:
    play(choices, streams, steps)


@pytest.fixture(scope="module")
def streams(auto_mapping: None) -> list[torch.Stream]:
    return [torch.xpu.current_stream(), torch.xpu.Stream(), torch.xpu.Stream()]


def random_steps(rng: random.Random) -> list[Step]:
    return [
        Step(
            op=rng.randrange(len(OPS)),
            first=rng.randrange(12),
            second=rng.randrange(12),
            kind=rng.choice(["cpu", "gpu"]),
            stream=rng.choice([0, 0, 0, 1, 2]),
            share=rng.choice([0, 0, 0.3, 0.5]),
        )
        for _ in range(rng.randint(3, 30))
    ]


@pytest.mark.parametrize("count", [60, pytest.param(10_000, marks=pytest.mark.slow)])
def test_many(choices: Choices, streams: list[torch.Stream], count: int) -> None:
    for seed in range(count):
        rng = random.Random(seed)
        steps = random_steps(rng)
        if seed % 3 == 0:
            steps = [step._replace(stream=0) for step in steps]
        try:
            play(choices, streams, steps)
        except BaseException as error:
            error.add_note(f"seed {seed}: {steps}")
            raise
