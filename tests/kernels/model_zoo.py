"""Small models of each common kind, with a batch each, for tests that train them."""

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional as F


class ResidualBlock(nn.Module):
    """Two convolutions beside a shortcut (He and others, 2015)."""

    def __init__(self, channels: int, out_channels: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(channels, out_channels, 3, stride, 1, bias=False)
        self.norm1 = nn.BatchNorm2d(out_channels)
        self.conv2 = nn.Conv2d(out_channels, out_channels, 3, 1, 1, bias=False)
        self.norm2 = nn.BatchNorm2d(out_channels)
        self.shortcut: nn.Module = nn.Identity()
        if stride != 1 or channels != out_channels:
            self.shortcut = nn.Sequential(
                nn.Conv2d(channels, out_channels, 1, stride, bias=False),
                nn.BatchNorm2d(out_channels),
            )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = F.relu(self.norm1(self.conv1(x)), inplace=True)
        return F.relu(self.norm2(self.conv2(y)) + self.shortcut(x))


class ResNet18(nn.Module):
    """Eight blocks in four widths, the first of them `width` channels."""

    def __init__(self, width: int, classes: int) -> None:
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv2d(3, width, 7, 2, 3, bias=False),
            nn.BatchNorm2d(width),
            nn.ReLU(inplace=True),
            nn.MaxPool2d(3, 2, 1),
        )
        widths = [width, width, 2 * width, 4 * width, 8 * width]
        blocks: list[nn.Module] = []
        for level in range(4):
            into, out = widths[level : level + 2]
            blocks.append(ResidualBlock(into, out, 1 if level == 0 else 2))
            blocks.append(ResidualBlock(out, out, 1))
        self.blocks = nn.Sequential(*blocks)
        self.head = nn.Linear(widths[-1], classes)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = F.adaptive_avg_pool2d(self.blocks(self.stem(x)), 1)
        return self.head(y.flatten(1))


class DecoderBlock(nn.Module):
    """Causal attention and two layers with GELU, normalized first."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.widen, self.narrow = (
            nn.Linear(width, 4 * width),
            nn.Linear(4 * width, width),
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, width = x.shape
        parts = self.qkv(self.norm1(x)).view(batch, length, 3, self.heads, -1)
        q, k, v = parts.permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(batch, length, width))
        return x + self.narrow(F.gelu(self.widen(self.norm2(x))))


class Decoder(nn.Module):
    """A language model of the kind of GPT-2."""

    def __init__(self, vocabulary: int, length: int, width: int, heads: int) -> None:
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, width)
        self.positions = nn.Embedding(length, width)
        self.blocks = nn.Sequential(*(DecoderBlock(width, heads) for _ in range(2)))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, vocabulary, bias=False)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        places = torch.arange(tokens.shape[1], device=tokens.device)
        x = self.tokens(tokens) + self.positions(places)
        return self.head(self.norm(self.blocks(x)))


@dataclass(frozen=True)
class Case:
    """A model, its loss of a batch, and an optimizer of parameters."""

    model: nn.Module
    batch: tuple[torch.Tensor, ...]
    loss: Callable[..., torch.Tensor]
    optimizer: Callable[[Any], torch.optim.Optimizer]


def adamw(parameters: Any) -> torch.optim.Optimizer:
    return torch.optim.AdamW(parameters, lr=1e-3)


def resnet() -> Case:
    return Case(
        ResNet18(8, 10),
        (torch.randn(8, 3, 32, 32), torch.randint(10, (8,))),
        lambda model, images, labels: F.cross_entropy(model(images), labels),
        lambda parameters: torch.optim.SGD(parameters, 0.01, 0.9, weight_decay=1e-4),
    )


def gpt() -> Case:
    def loss(model: nn.Module, tokens: torch.Tensor) -> torch.Tensor:
        scores = model(tokens[:, :-1])
        return F.cross_entropy(scores.flatten(0, 1), tokens[:, 1:].flatten())

    return Case(Decoder(50, 16, 32, 4), (torch.randint(50, (4, 17)),), loss, adamw)


# What makes an encoder of transformers small, and repeatable.
ENCODER = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 64,
    "hidden_dropout_prob": 0.0,
    "attention_probs_dropout_prob": 0.0,
}


def bert() -> Case:
    transformers = pytest.importorskip("transformers")
    model = transformers.BertForSequenceClassification(
        transformers.BertConfig(
            vocab_size=50, max_position_embeddings=32, num_labels=3, **ENCODER
        )
    )
    mask = torch.ones(4, 12, dtype=torch.int64)
    mask[1, 7:] = 0
    return Case(
        model,
        (torch.randint(50, (4, 12)), mask, torch.randint(3, (4,))),
        lambda model, tokens, mask, labels: (
            model(input_ids=tokens, attention_mask=mask, labels=labels).loss
        ),
        adamw,
    )


def vit() -> Case:
    transformers = pytest.importorskip("transformers")
    model = transformers.ViTForImageClassification(
        transformers.ViTConfig(
            image_size=32,
            patch_size=8,
            num_labels=10,
            **ENCODER,
        )
    )
    return Case(
        model,
        (torch.randn(4, 3, 32, 32), torch.randint(10, (4,))),
        lambda model, images, labels: model(pixel_values=images, labels=labels).loss,
        adamw,
    )


CASES = {"resnet": resnet, "gpt": gpt, "bert": bert, "vit": vit}


STEPS = 3


def losses(case: Case, device: torch.device | str) -> list[float]:
    """The losses of the first steps of training."""
    model = copy.deepcopy(case.model).to(device).train()
    batch = [each.to(device) for each in case.batch]
    optimizer = case.optimizer(model.parameters())
    seen = []
    for _ in range(STEPS):
        optimizer.zero_grad()
        loss = case.loss(model, *batch)
        loss.backward()
        optimizer.step()
        seen.append(loss.detach())
    return [each.item() for each in seen]
