"""A language model with a cache of keys and values, and its calls: reading a prompt, and
writing a token."""

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from xpurt_tools.bench.row import SEED


@dataclass(frozen=True, slots=True)
class Shape:
    """The sizes of a Llama (Touvron and others, 2023), by default with the layers of one
    of a billion parameters, but four of them: 308 million parameters."""

    layers: int = 4
    width: int = 2048
    inner: int = 8192
    heads: int = 16
    groups: int = 4  # heads of keys and values
    words: int = 32_000


@dataclass(frozen=True, slots=True)
class Call:
    """Tokens that are read at once, of `batch` texts, behind `past` ones in the cache."""

    tokens: int
    past: int = 0
    batch: int = 1


class Layer(nn.Module):
    keys: Tensor
    values: Tensor

    def __init__(self, shape: Shape, call: Call) -> None:
        super().__init__()
        head = shape.width // shape.heads
        self.head, self.past = head, call.past
        self.norm, self.after = nn.RMSNorm(shape.width), nn.RMSNorm(shape.width)
        self.q = nn.Linear(shape.width, shape.width, bias=False)
        self.k = nn.Linear(shape.width, shape.groups * head, bias=False)
        self.v = nn.Linear(shape.width, shape.groups * head, bias=False)
        self.o = nn.Linear(shape.width, shape.width, bias=False)
        self.gate = nn.Linear(shape.width, shape.inner, bias=False)
        self.up = nn.Linear(shape.width, shape.inner, bias=False)
        self.down = nn.Linear(shape.inner, shape.width, bias=False)
        room = call.batch, shape.groups, call.past + call.tokens, head
        self.register_buffer("keys", torch.randn(room))
        self.register_buffer("values", torch.randn(room))

    def forward(self, x: Tensor, turns: tuple[Tensor, Tensor]) -> Tensor:
        y = self.norm(x)
        q, k, v = (
            each(y).unflatten(-1, (-1, self.head)).transpose(1, 2)
            for each in (self.q, self.k, self.v)
        )
        self.keys[:, :, self.past :] = turned(k, *turns)
        self.values[:, :, self.past :] = v
        y = F.scaled_dot_product_attention(
            turned(q, *turns),
            self.keys,
            self.values,
            is_causal=x.shape[1] > 1,
            enable_gqa=True,
        )
        x = x + self.o(y.transpose(1, 2).flatten(2))
        y = self.after(x)
        result: Tensor = x + self.down(F.silu(self.gate(y)) * self.up(y))
        return result


def turned(x: Tensor, cosines: Tensor, sines: Tensor) -> Tensor:
    """Rotary positions (Su and others, 2021)."""
    first, second = x.chunk(2, -1)
    return x * cosines + torch.cat([-second, first], -1) * sines


class Llama(nn.Module):
    """The logits of the word after each text. The cache's first `past` tokens are random."""

    cosines: Tensor
    sines: Tensor

    def __init__(self, shape: Shape, call: Call) -> None:
        super().__init__()
        self.words = nn.Embedding(shape.words, shape.width)
        self.layers = nn.ModuleList(Layer(shape, call) for _ in range(shape.layers))
        self.norm = nn.RMSNorm(shape.width)
        self.to_words = nn.Linear(shape.width, shape.words, bias=False)
        head = shape.width // shape.heads
        rates = 10_000.0 ** (-torch.arange(0, head, 2) / head)
        places = torch.arange(call.past, call.past + call.tokens)
        turns = torch.outer(places, rates).repeat(1, 2)
        self.register_buffer("cosines", turns.cos())
        self.register_buffer("sines", turns.sin())

    def forward(self, text: Tensor) -> Tensor:
        x = self.words(text)
        for layer in self.layers:
            x = layer(x, (self.cosines, self.sines))
        logits: Tensor = self.to_words(self.norm(x[:, -1:]))
        return logits


def made(shape: Shape, call: Call) -> tuple[Llama, Tensor]:
    """The model in bfloat16 with the same parameters every time, and its text."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(SEED)
        model = Llama(shape, call).bfloat16().eval()
        return model, torch.randint(shape.words, (call.batch, call.tokens))
