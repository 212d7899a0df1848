"""Small networks of several kinds, for lazy tensors. Each one has a loss of its data."""

from collections.abc import Callable

import torch
from torch import Tensor, nn

F = nn.functional


class Network(nn.Module):
    """A body, and the data whose classes it learns."""

    def __init__(self, body: nn.Module, x: Tensor, classes: int, of: int) -> None:
        super().__init__()
        self.body = body
        self.register_buffer("x", x)
        self.register_buffer("y", torch.randint(classes, (of,)))

    def loss(self) -> Tensor:
        found = self.body(self.x)
        return F.cross_entropy(found.reshape(-1, found.shape[-1]), self.y)


def mlp() -> Network:
    body = nn.Sequential(
        nn.Linear(20, 64), nn.ReLU(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 5)
    )
    return Network(body, torch.randn(16, 20), 5, 16)


def lenet() -> Network:
    convolutions = (nn.Conv2d(1, 6, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2))
    more = (nn.Conv2d(6, 16, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten())
    dense = (nn.Linear(400, 120), nn.ReLU(), nn.Linear(120, 10))
    body = nn.Sequential(*convolutions, *more, *dense)
    return Network(body, torch.randn(4, 1, 28, 28), 10, 4)


class Block(nn.Module):
    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.first = nn.Conv2d(inputs, outputs, 3, stride, padding=1, bias=False)
        self.second = nn.Conv2d(outputs, outputs, 3, padding=1, bias=False)
        self.norms = nn.ModuleList([nn.BatchNorm2d(outputs) for _ in range(2)])
        self.short = (
            nn.Identity()
            if stride == 1 and inputs == outputs
            else nn.Sequential(
                nn.Conv2d(inputs, outputs, 1, stride, bias=False),
                nn.BatchNorm2d(outputs),
            )
        )

    def forward(self, x: Tensor) -> Tensor:
        found = F.relu(self.norms[0](self.first(x)))
        return F.relu(self.norms[1](self.second(found)) + self.short(x))


def resnet18() -> Network:
    """The 18 layers of ResNet-18, with a sixteenth of its channels."""
    widths = (4, 8, 16, 32)
    layers: list[nn.Module] = [nn.Conv2d(3, 4, 3, padding=1, bias=False)]
    layers += [nn.BatchNorm2d(4), nn.ReLU()]
    before = 4
    for width in widths:
        layers += [Block(before, width, 1 if width == 4 else 2), Block(width, width, 1)]
        before = width
    layers += [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(32, 10)]
    return Network(nn.Sequential(*layers), torch.randn(4, 3, 12, 12), 10, 4)


class Last(nn.Module):
    """The classes of a sequence, by the last result of a recurrent network."""

    def __init__(self, make: Callable[..., nn.Module]) -> None:
        super().__init__()
        self.recurrent, self.out = make(6, 12, batch_first=True), nn.Linear(12, 4)

    def forward(self, x: Tensor) -> Tensor:
        found, _ = self.recurrent(x)
        return self.out(found[:, -1])


def lstm() -> Network:
    return Network(Last(nn.LSTM), torch.randn(5, 7, 6), 4, 5)


def gru() -> Network:
    return Network(Last(nn.GRU), torch.randn(5, 7, 6), 4, 5)


class Transformer(nn.Module):
    """Tokens to logits: with `causal` as GPT does, else as BERT's encoder."""

    def __init__(self, causal: bool, words: int = 23, width: int = 16) -> None:
        super().__init__()
        self.causal = causal
        self.words, self.places = nn.Embedding(words, width), nn.Embedding(9, width)
        self.blocks = nn.ModuleList(
            nn.ModuleDict(
                {
                    "norm": nn.LayerNorm(width),
                    "mixed": nn.Linear(width, 3 * width),
                    "joined": nn.Linear(width, width),
                    "dense": nn.Sequential(
                        nn.LayerNorm(width),
                        nn.Linear(width, 4 * width),
                        nn.GELU(),
                        nn.Linear(4 * width, width),
                    ),
                }
            )
            for _ in range(2)
        )
        self.out = nn.Linear(width, words)

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.words(tokens) + self.places(torch.arange(9, device=tokens.device))
        for block in self.blocks:
            parts = block["mixed"](block["norm"](x)).unflatten(-1, (3, 2, -1))
            query, key, value = parts.permute(2, 0, 3, 1, 4)
            found = F.scaled_dot_product_attention(
                query, key, value, is_causal=self.causal
            )
            x = x + block["joined"](found.transpose(1, 2).flatten(2))
            x = x + block["dense"](x)
        return self.out(x)


def gpt() -> Network:
    return Network(Transformer(causal=True), torch.randint(23, (3, 9)), 23, 27)


def bert() -> Network:
    return Network(Transformer(causal=False), torch.randint(23, (3, 9)), 23, 27)


NETWORKS = (mlp, lenet, resnet18, lstm, gru, gpt, bert)
OPTIMIZERS: dict[str, Callable[..., torch.optim.Optimizer]] = {
    "sgd": lambda p: torch.optim.SGD(p, 0.05, momentum=0.9),
    "adam": lambda p: torch.optim.Adam(p, 0.003),
    "adamw": lambda p: torch.optim.AdamW(p, 0.003),
}
