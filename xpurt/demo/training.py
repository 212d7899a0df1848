"""A training loop for any device."""

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import torch
from torch.nn.functional import cross_entropy

from xpurt.demo.data import Digits
from xpurt.demo.network import DigitNet

SEED = 7
BATCH_SIZE = 64
LEARNING_RATE = 2e-3


@dataclass(frozen=True)
class Epoch:
    """The results of one pass over the training images.

    `loss` is the mean over the pass. `accuracy` is of the test images, in 0..1.
    `images_per_s` counts training only, with the device synchronized at both ends.
    """

    loss: float
    accuracy: float
    images_per_s: float


@dataclass
class History:
    device: str
    epochs: list[Epoch] = field(default_factory=list)

    @property
    def images_per_s(self) -> float:
        """The median over the epochs without the first one, which builds kernels."""
        return statistics.median(e.images_per_s for e in self.epochs[1:] or self.epochs)


def train(
    device: torch.device,
    digits: Digits,
    epochs: int,
    *,
    on_step: Callable[[], None] = lambda: None,
    on_epoch: Callable[[Epoch], None] = lambda epoch: None,
) -> History:
    """Trains a new `DigitNet` on `device` and returns the results of each epoch.

    Weights and the order of the images are drawn on the CPU from `SEED`, so that all
    devices do the same work, and their results differ by rounding only. `on_step` is
    called after each batch is submitted, `on_epoch` after each pass.
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(SEED)
        network = DigitNet()
    network.to(device)
    digits = digits.to(device)
    optimizer = torch.optim.Adam(network.parameters(), lr=LEARNING_RATE)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=epochs)
    shuffle = torch.Generator().manual_seed(SEED)
    history = History(str(device))
    for _ in range(epochs):
        order = torch.randperm(len(digits.train_labels), generator=shuffle).to(device)
        began = _finished_at(device)
        loss = _one_pass(network, optimizer, digits, order, on_step)
        seconds = _finished_at(device) - began
        schedule.step()
        epoch = Epoch(
            loss=loss,
            accuracy=accuracy(network, digits.test_images, digits.test_labels),
            images_per_s=len(order) / seconds,
        )
        history.epochs.append(epoch)
        on_epoch(epoch)
    return history


def steps_per_epoch(digits: Digits) -> int:
    return -(-len(digits.train_labels) // BATCH_SIZE)


def accuracy(network: DigitNet, images: torch.Tensor, labels: torch.Tensor) -> float:
    """The share of `images` that `network` classifies correctly, in 0..1."""
    network.eval()
    with torch.no_grad():
        hits = (network(images).argmax(dim=1) == labels).sum()
    network.train()
    return float(hits) / len(labels)


def _one_pass(
    network: DigitNet,
    optimizer: torch.optim.Optimizer,
    digits: Digits,
    order: torch.Tensor,
    on_step: Callable[[], None],
) -> float:
    # The sum stays on the device: reading it at each step would wait for the device.
    total = torch.zeros((), device=order.device)
    for chosen in torch.split(order, BATCH_SIZE):
        loss = cross_entropy(
            network(digits.train_images[chosen]), digits.train_labels[chosen]
        )
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        total += loss.detach() * len(chosen)
        on_step()
    return float(total) / len(order)


def _finished_at(device: torch.device) -> float:
    """The time of the clock in seconds, read once `device` has finished its work."""
    torch.get_device_module(device).synchronize()
    return time.perf_counter()
