"""Networks that the tests quantize, trained within seconds, and their figures."""

import functools
from collections.abc import Callable
from typing import TypeVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from xpurt.demo.data import Digits, load_digits
from xpurt.demo.network import DigitNet
from xpurt.demo.training import BATCH_SIZE
from xpurt_tools.bench.models import GPT, next_token

Trained = TypeVar("Trained", bound=nn.Module)

TEXT = (
    "a tensor lives in the memory of a device. a stream is a queue, and work in it runs "
    "in order. an event marks a place in a queue. a mapping says which devices stand "
    "behind an ordinal. a kernel is built once for each device, and kept. a model that "
    "is quantized has small weights, so that less memory is read for each token. "
) * 4
LETTERS = sorted(set(TEXT))
LENGTH = 48


def on_one_thread(train: Callable[[], Trained]) -> Callable[[], Trained]:
    """Small networks train faster so, most of all on a machine that others use too."""

    @functools.cache
    @functools.wraps(train)
    def trained() -> Trained:
        threads = torch.get_num_threads()
        torch.set_num_threads(1)
        try:
            return train()
        finally:
            torch.set_num_threads(threads)

    return trained


@functools.cache
def digits() -> Digits:
    return load_digits()


@on_one_thread
def trained_digits() -> DigitNet:
    """The demo's network after six passes, in eval mode, on the CPU."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(7)
        network = DigitNet()
        optimizer = torch.optim.Adam(network.parameters(), lr=2e-3)
        data = digits()
        for _ in range(6):
            order = torch.randperm(len(data.train_labels))
            for chosen in order.split(BATCH_SIZE):
                logits = network(data.train_images[chosen])
                optimizer.zero_grad()
                F.cross_entropy(logits, data.train_labels[chosen]).backward()
                optimizer.step()
    network.zero_grad()
    return network.requires_grad_(False).eval()


def accuracy(network: nn.Module, device: str) -> float:
    """Of the test images, in percent."""
    data = digits()
    with torch.no_grad():
        found = network(data.test_images.to(device)).argmax(1).cpu()
    return 100 * (found == data.test_labels).double().mean().item()


def calibration_images(device: str) -> list[Tensor]:
    return list(digits().train_images[:256].to(device).split(64))


def _text() -> Tensor:
    return torch.tensor([LETTERS.index(letter) for letter in TEXT])


@on_one_thread
def trained_gpt() -> GPT:
    """A character-level decoder, in eval mode, on the CPU."""
    text = _text()
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(3)
        model = GPT(len(LETTERS), LENGTH, width=32, heads=2, layers=1)
        optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3)
        for _ in range(120):
            starts = torch.randint(len(text) - LENGTH - 1, (16,))
            batch = torch.stack([text[s : s + LENGTH + 1] for s in starts.tolist()])
            loss = next_token(model, batch)
            optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
    model.zero_grad()
    return model.requires_grad_(False).eval()


def windows(device: str) -> list[Tensor]:
    """The text in pieces of `LENGTH` letters."""
    return list(_text()[: LENGTH * 24].view(-1, LENGTH).to(device).split(8))


def loss_of(model: nn.Module, device: str) -> float:
    """The mean loss of the next letter over the whole text."""
    with torch.no_grad():
        losses = [next_token(model, batch) for batch in windows(device)]
    return torch.stack(losses).mean().item()
