"""The parts of the demo that know nothing of a device, tried on the CPU."""

import pytest
import torch

from xpurt.demo.data import TEST_IMAGES, Digits, load_digits
from xpurt.demo.network import DigitNet
from xpurt.demo.training import Epoch, accuracy, steps_per_epoch, train

CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def digits() -> Digits:
    return load_digits()


def test_all_images_are_split_and_none_is_in_both_parts(digits: Digits) -> None:
    assert digits.train_images.shape == (1797 - TEST_IMAGES, 1, 8, 8)
    assert digits.test_images.shape == (TEST_IMAGES, 1, 8, 8)
    assert digits.train_images.dtype == torch.float32
    assert digits.train_labels.unique().tolist() == list(range(10))
    assert digits.test_labels.unique().tolist() == list(range(10))
    assert digits.train_images.min() == 0
    assert digits.train_images.max() == 1
    both = torch.cat([digits.train_images, digits.test_images]).flatten(1)
    assert len(both.unique(dim=0)) == 1797


def test_the_split_is_the_same_every_time(digits: Digits) -> None:
    assert torch.equal(load_digits().test_images, digits.test_images)


def test_training_reads_97_percent_of_the_test_images(digits: Digits) -> None:
    history = train(CPU, digits, epochs=10)
    assert history.epochs[-1].accuracy >= 0.97
    assert history.epochs[-1].loss < history.epochs[0].loss / 5
    assert all(epoch.images_per_s > 0 for epoch in history.epochs)


def test_training_twice_gives_the_same_numbers(digits: Digits) -> None:
    first, second = (train(CPU, digits, epochs=1).epochs[0] for _ in range(2))
    assert first.loss == pytest.approx(second.loss, rel=1e-5)


def test_training_leaves_the_random_state_alone(digits: Digits) -> None:
    before = torch.get_rng_state()
    train(CPU, digits, epochs=1)
    assert torch.equal(torch.get_rng_state(), before)


def test_the_caller_hears_of_every_step_and_epoch(digits: Digits) -> None:
    steps: list[None] = []
    epochs: list[Epoch] = []
    history = train(
        CPU,
        digits,
        epochs=2,
        on_step=lambda: steps.append(None),
        on_epoch=epochs.append,
    )
    assert len(steps) == 2 * steps_per_epoch(digits)
    assert epochs == history.epochs


def test_a_network_that_learned_nothing_guesses(digits: Digits) -> None:
    torch.manual_seed(0)
    share = accuracy(DigitNet(), digits.test_images, digits.test_labels)
    assert share < 0.4
