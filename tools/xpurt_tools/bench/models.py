"""The networks of the suite `train`, with a batch and a loss each, and their steps."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F


@dataclass(frozen=True, slots=True)
class Case:
    """A network to train. `loss` takes the model and the tensors of the batch."""

    model: nn.Module
    batch: tuple[Tensor, ...]
    loss: Callable[..., Tensor]


def sgd(parameters: Iterable[Tensor]) -> torch.optim.Optimizer:
    return torch.optim.SGD(parameters, 1e-3, momentum=0.9)


def training_step(
    case: Case,
    device: torch.device | str,
    optimizer: Callable[[Iterable[Tensor]], torch.optim.Optimizer] = sgd,
    wrap: Callable[[nn.Module], nn.Module] = lambda model: model,
) -> Callable[[], None]:
    """A call that does a whole step on the device, which the model is moved to.

    wrap: makes of the model what is trained, as DistributedDataParallel does.
    """
    model = wrap(case.model.to(device))
    batch = [each.to(device) for each in case.batch]
    steps = optimizer(model.parameters())

    def step() -> None:
        steps.zero_grad()
        loss: Any = case.loss(model, *batch)
        loss.backward()
        steps.step()

    return step


class Residual(nn.Module):
    """Two convolutions beside a shortcut (He and others, 2015)."""

    def __init__(self, into: int, out: int, stride: int) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(into, out, 3, stride, 1, bias=False),
            nn.BatchNorm2d(out),
            nn.ReLU(inplace=True),
            nn.Conv2d(out, out, 3, 1, 1, bias=False),
            nn.BatchNorm2d(out),
        )
        self.shortcut: nn.Module = nn.Identity()
        if stride != 1 or into != out:
            self.shortcut = nn.Sequential(
                nn.Conv2d(into, out, 1, stride, bias=False), nn.BatchNorm2d(out)
            )

    def forward(self, x: Tensor) -> Tensor:
        return F.relu(self.body(x) + self.shortcut(x))


def resnet18(classes: int) -> nn.Module:
    """For images of 32x32: the first convolution is 3x3, without max pooling."""
    widths = (64, 64, 128, 256, 512)
    blocks = [
        block
        for level in range(4)
        for block in (
            Residual(widths[level], widths[level + 1], 1 if level == 0 else 2),
            Residual(widths[level + 1], widths[level + 1], 1),
        )
    ]
    return nn.Sequential(
        nn.Conv2d(3, 64, 3, 1, 1, bias=False),
        nn.BatchNorm2d(64),
        nn.ReLU(inplace=True),
        *blocks,
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(512, classes),
    )


class TransformerLayer(nn.Module):
    """Attention and two linear layers, each normalized first."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.before_attention = nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.mlp = nn.Sequential(
            nn.LayerNorm(width),
            nn.Linear(width, 4 * width),
            nn.GELU(),
            nn.Linear(4 * width, width),
        )

    def forward(self, x: Tensor) -> Tensor:
        qkv = self.qkv(self.before_attention(x)).unflatten(-1, (3, self.heads, -1))
        q, k, v = qkv.permute(2, 0, 3, 1, 4)
        y = self.attend(q, k, v)
        x = x + self.out(y.transpose(1, 2).flatten(2))
        result: Tensor = x + self.mlp(x)
        return result

    def attend(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """q, k, v and the result: (batch, heads, tokens, width of a head)."""
        return F.scaled_dot_product_attention(q, k, v)


class DecoderLayer(TransformerLayer):
    """With causal attention."""

    def attend(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return F.scaled_dot_product_attention(q, k, v, is_causal=True)


class GPT(nn.Module):
    """A decoder like GPT-2 (Radford and others, 2019)."""

    def __init__(
        self, vocabulary: int, length: int, width: int, heads: int, layers: int
    ) -> None:
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, width)
        self.positions = nn.Embedding(length, width)
        self.layers = nn.Sequential(
            *(DecoderLayer(width, heads) for _ in range(layers))
        )
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, vocabulary, bias=False)

    def forward(self, tokens: Tensor) -> Tensor:
        places = torch.arange(tokens.shape[1], device=tokens.device)
        x = self.tokens(tokens) + self.positions(places)
        logits: Tensor = self.head(self.norm(self.layers(x)))
        return logits


def classification(model: nn.Module, images: Tensor, labels: Tensor) -> Tensor:
    return F.cross_entropy(model(images), labels)


def next_token(model: nn.Module, tokens: Tensor) -> Tensor:
    logits = model(tokens[:, :-1])
    return F.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())


def mlp(batch: int = 128) -> Case:
    model = nn.Sequential(
        nn.Linear(784, 1024),
        nn.ReLU(),
        nn.Linear(1024, 1024),
        nn.ReLU(),
        nn.Linear(1024, 10),
    )
    return Case(
        model, (torch.randn(batch, 784), torch.randint(10, (batch,))), classification
    )


def resnet(batch: int = 16) -> Case:
    """Images of 32x32."""
    images = torch.randn(batch, 3, 32, 32), torch.randint(10, (batch,))
    return Case(resnet18(10), images, classification)


def gpt(batch: int = 8) -> Case:
    """128 tokens."""
    model = GPT(vocabulary=1000, length=128, width=256, heads=8, layers=4)
    return Case(model, (torch.randint(1000, (batch, 129)),), next_token)


MODELS: dict[str, Callable[[], Case]] = {
    "MLP": mlp,
    "ResNet-18": resnet,
    "GPT": gpt,
}
