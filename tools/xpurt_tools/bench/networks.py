"""Networks in evaluation mode for the suites of optimized models, and their inputs."""

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from xpurt_tools.bench.models import GPT, Residual, TransformerLayer
from xpurt_tools.bench.row import SEED

# A network in evaluation mode, and its input.
Inference = tuple[nn.Module, Tensor]
Make = Callable[[], Inference]

BATCH = 8
TOKENS = 128


class Bottleneck(nn.Module):
    """Of a ResNet-50 (He and others, 2015)."""

    def __init__(self, before: int, after: int, stride: int) -> None:
        super().__init__()
        width = after // 4
        self.body = nn.Sequential(
            *(
                nn.Conv2d(before, width, 1, bias=False),
                nn.BatchNorm2d(width),
                nn.ReLU(),
            ),
            nn.Conv2d(width, width, 3, stride, 1, bias=False),
            *(nn.BatchNorm2d(width), nn.ReLU()),
            *(nn.Conv2d(width, after, 1, bias=False), nn.BatchNorm2d(after)),
        )
        self.shortcut: nn.Module = nn.Identity()
        if before != after:
            self.shortcut = nn.Sequential(
                nn.Conv2d(before, after, 1, stride, bias=False), nn.BatchNorm2d(after)
            )

    def forward(self, x: Tensor) -> Tensor:
        return torch.relu(self.body(x) + self.shortcut(x))


def resnet(
    block: Callable[[int, int, int], nn.Module],
    width: int,
    depths: tuple[int, ...],
    side: int = 224,
) -> Inference:
    """width: of the first blocks' results, in channels. side: of the images, in pixels."""
    blocks: list[nn.Module] = []
    before = 64
    for level, depth in enumerate(depths):
        for place in range(depth):
            after = width << level
            blocks.append(block(before, after, 2 if level and not place else 1))
            before = after
    model = nn.Sequential(
        *(nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU()),
        nn.MaxPool2d(3, 2, 1),
        *blocks,
        *(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(before, 1000)),
    )
    return model, torch.randn(BATCH, 3, side, side)


def resnet18() -> Inference:
    return resnet(Residual, 64, (2, 2, 2, 2))


def resnet50() -> Inference:
    return resnet(Bottleneck, 256, (3, 4, 6, 3))


class EncoderLayer(nn.Module):
    """Of a BERT (Devlin and others, 2018)."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.query, self.key, self.value, self.out = (
            nn.Linear(width, width) for _ in range(4)
        )
        self.norm = nn.LayerNorm(width)
        self.into, self.back = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.after = nn.LayerNorm(width)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = (
            each(x).unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for each in (self.query, self.key, self.value)
        )
        y = F.scaled_dot_product_attention(q, k, v)
        x = self.norm(x + self.out(y.transpose(1, 2).flatten(2)))
        y = self.back(F.gelu(self.into(x)))
        result: Tensor = self.after(x + y)
        return result


def bert() -> Inference:
    """A quarter of the layers of BERT-base."""
    layers = nn.Sequential(*(EncoderLayer(768, 12) for _ in range(3)))
    return layers, torch.randn(1, TOKENS, 768)


def gpt() -> Inference:
    model = GPT(vocabulary=1000, length=128, width=256, heads=8, layers=4)
    return model, torch.randint(1000, (8, 128))


class CachedDecoderLayer(TransformerLayer):
    """A layer of a GPT-2 (Radford and others, 2019) for one new token, beside the keys
    and values of those before it.

    past: tokens in the cache, with the new one, which takes the last place in each call.
    """

    cache: Tensor

    def __init__(self, width: int, heads: int, past: int) -> None:
        super().__init__(width, heads)
        cache = torch.randn(2, 1, heads, past, width // heads)
        self.register_buffer("cache", cache)

    def attend(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        self.cache[0, :, :, -1:], self.cache[1, :, :, -1:] = k, v
        return F.scaled_dot_product_attention(q, self.cache[0], self.cache[1])


def decoder(
    vocabulary: int = 50257, width: int = 768, heads: int = 12, layers: int = 12
) -> Inference:
    """A GPT-2 that writes the token after the 128 in its cache; by default the small one.
    Its input is the new token's embedding."""
    model = nn.Sequential(
        *(CachedDecoderLayer(width, heads, TOKENS) for _ in range(layers)),
        *(nn.LayerNorm(width), nn.Linear(width, vocabulary, bias=False)),
    )
    return model, torch.randn(1, 1, width)


def made(network: Make) -> Inference:
    """The network with the same parameters every time."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(SEED)
        model, x = network()
    return model.eval(), x
