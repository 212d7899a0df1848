"""Optimized models, and the same models in eager PyTorch on CPU tensors, in float32."""

from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor, nn

import xpurt
from xpurt.bench.models import GPT, Residual
from xpurt.bench.row import LARGE, SEED, Row, Suite, Work

# A network in evaluation mode, and its input.
Inference = tuple[nn.Module, Tensor]

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


def _resnet(
    block: Callable[[int, int, int], nn.Module], width: int, depths: tuple[int, ...]
) -> Inference:
    """For images of 224x224. width: of the first blocks' results, in channels."""
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
    return model, torch.randn(BATCH, 3, 224, 224)


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
        y = nn.functional.scaled_dot_product_attention(q, k, v)
        x = self.norm(x + self.out(y.transpose(1, 2).flatten(2)))
        y = self.back(nn.functional.gelu(self.into(x)))
        result: Tensor = self.after(x + y)
        return result


def _bert() -> Inference:
    """A quarter of the layers of BERT-base."""
    layers = nn.Sequential(*(EncoderLayer(768, 12) for _ in range(3)))
    return layers, torch.randn(1, TOKENS, 768)


def _gpt() -> Inference:
    model = GPT(vocabulary=1000, length=128, width=256, heads=8, layers=4)
    return model, torch.randint(1000, (8, 128))


NETWORKS: dict[str, Callable[[], Inference]] = {
    "ResNet-18": partial(_resnet, Residual, 64, (2, 2, 2, 2)),
    "ResNet-50": partial(_resnet, Bottleneck, 256, (3, 4, 6, 3)),
    "BERT-base, 3 layers": _bert,
    "GPT": _gpt,
}


def _work(
    name: str,
    dtype: torch.dtype,
    kind: str,
    device: torch.device,
    *,
    stock: bool = False,
) -> Work:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(SEED)
        model, x = NETWORKS[name]()
    model = model.eval()
    if not stock:
        model, x = model.to(kind), x.to(kind)
        model = xpurt.optimize(model, dtype=dtype, sample_input=x, inplace=True)

    def call() -> Tensor:
        with torch.no_grad():
            result: Tensor = model(x)
        return result

    return Work(call, elements=LARGE)


def _rows(name: str, at_most: dict[torch.dtype, float]) -> list[Row]:
    return [
        Row(
            f"{name} {'f32' if dtype is torch.float32 else 'bf16'}, {kind} tensors",
            partial(_work, name, dtype, kind),
            partial(_work, name, torch.float32, "cpu", stock=True),
            at_most=limit,
            long=True,
        )
        for dtype, limit in at_most.items()
        for kind in ("cpu", "xpu")
    ]


# For processors without AMX.
OPTIMIZE = Suite(
    "optimize",
    "optimized models for inference, and eager PyTorch on CPU tensors in float32",
    target=1.0,
    processor=True,
    beside="stock",
    only_by_name=True,
    rows=(
        *_rows("ResNet-18", {torch.float32: 0.65, torch.bfloat16: 0.7}),
        *_rows("ResNet-50", {torch.float32: 0.65, torch.bfloat16: 0.7}),
        *_rows("BERT-base, 3 layers", {torch.float32: 0.9, torch.bfloat16: 0.7}),
        *_rows("GPT", {torch.float32: 1.0, torch.bfloat16: 0.7}),
    ),
)
