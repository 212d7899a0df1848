"""The networks whose training steps the suite `auto` times, with small and large
batches."""

import itertools
from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from xpurt_tools.bench.auto.case import AutoCase, Limit
from xpurt_tools.bench.models import (
    Case,
    classification,
    gpt,
    mlp,
    resnet,
    training_step,
)
from xpurt_tools.bench.row import SEED, Call

GROUP = "training steps"


def cnn(batch: int) -> Case:
    """Three convolutions on images of 32x32."""
    widths = (3, 32, 64, 128)
    layers: list[nn.Module] = []
    for into, out in itertools.pairwise(widths):
        layers += [nn.Conv2d(into, out, 3, 1, 1), nn.ReLU(), nn.MaxPool2d(2)]
    model = nn.Sequential(*layers, nn.Flatten(), nn.Linear(128 * 16, 10))
    images = torch.randn(batch, 3, 32, 32), torch.randint(10, (batch,))
    return Case(model, images, classification)


class Bert(nn.Module):
    """An encoder like BERT's (Devlin and others, 2018): 4 layers of width 256."""

    def __init__(self, vocabulary: int = 1000, length: int = 128) -> None:
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, 256)
        self.positions = nn.Parameter(torch.randn(length, 256) * 0.02)
        layer = nn.TransformerEncoderLayer(
            256, 8, 1024, dropout=0.0, activation="gelu", batch_first=True
        )
        self.layers = nn.TransformerEncoder(layer, 4, enable_nested_tensor=False)
        self.head = nn.Linear(256, vocabulary)

    def forward(self, tokens: Tensor) -> Tensor:
        scores: Tensor = self.head(self.layers(self.tokens(tokens) + self.positions))
        return scores


def bert(batch: int) -> Case:
    tokens, targets = (torch.randint(1000, (batch, 128)) for _ in range(2))

    def loss(model: nn.Module, tokens: Tensor, targets: Tensor) -> Tensor:
        return F.cross_entropy(model(tokens).flatten(0, 1), targets.flatten())

    return Case(Bert(), (tokens, targets), loss)


class LastState(nn.Module):
    """Two layers of an LSTM; classes by its last state."""

    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(64, 128, 2, batch_first=True)
        self.head = nn.Linear(128, 10)

    def forward(self, sequences: Tensor) -> Tensor:
        states, _ = self.lstm(sequences)
        scores: Tensor = self.head(states[:, -1])
        return scores


def lstm(batch: int) -> Case:
    sequences = torch.randn(batch, 32, 64), torch.randint(10, (batch,))
    return Case(LastState(), sequences, classification)


# With a small and a large batch.
NETWORKS: dict[str, tuple[Callable[[int], Case], int, int]] = {
    "MLP": (mlp, 16, 512),
    "CNN": (cnn, 8, 64),
    "ResNet-18": (resnet, 4, 16),
    "GPT": (gpt, 2, 8),
    "BERT": (bert, 2, 8),
    "LSTM": (lstm, 8, 64),
}


def step(network: str, batch: int) -> Call:
    """A training step on xpu."""
    torch.manual_seed(SEED)
    return training_step(NETWORKS[network][0](batch), "xpu")


STEPS = tuple(
    AutoCase(
        f"{network} step, batch {batch}",
        lambda network=network, batch=batch: step(network, batch),  # type: ignore[misc]
        Limit(1.02, noise=1.03),
        group=GROUP,
        runs=3,
    )
    for network, (_, *batches) in NETWORKS.items()
    for batch in batches
)
