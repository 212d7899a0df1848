"""Two networks of the suite `compile` for images of 224x224."""

import torch
from torch import Tensor, nn

from xpurt_tools.bench.models import TransformerLayer


class VisionTransformer(nn.Module):
    """Patches of 16x16, and a token for the class (Dosovitskiy and others, 2020)."""

    def __init__(self, width: int, heads: int, layers: int, classes: int) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, width, 16, 16)
        self.token = nn.Parameter(torch.zeros(1, 1, width))
        self.positions = nn.Parameter(torch.randn(1, 1 + 14 * 14, width) * 0.02)
        self.layers = nn.Sequential(
            *(TransformerLayer(width, heads) for _ in range(layers))
        )
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, classes)

    def forward(self, x: Tensor) -> Tensor:
        x = self.patches(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.token.expand(x.shape[0], -1, -1), x], 1) + self.positions
        logits: Tensor = self.head(self.norm(self.layers(x))[:, 0])
        return logits


class ConvNeXtBlock(nn.Module):
    """A depthwise convolution and two linear layers on the channels."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.spatial = nn.Conv2d(width, width, 7, padding=3, groups=width)
        self.channels = nn.Sequential(
            nn.LayerNorm(width),
            nn.Linear(width, 4 * width),
            nn.GELU(),
            nn.Linear(4 * width, width),
        )
        self.scale = nn.Parameter(torch.full((width,), 1e-2))

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.channels(self.spatial(x).permute(0, 2, 3, 1)) * self.scale
        return x + y.permute(0, 3, 1, 2)


class ChannelNorm(nn.LayerNorm):
    """A layer norm over the channels of images."""

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = super().forward(x.permute(0, 2, 3, 1))
        return y.permute(0, 3, 1, 2)


def convnext(widths: tuple[int, ...], depths: tuple[int, ...]) -> nn.Module:
    """Liu and others, 2022; for 1000 classes."""
    layers: list[nn.Module] = [nn.Conv2d(3, widths[0], 4, 4), ChannelNorm(widths[0])]
    for level, (width, depth) in enumerate(zip(widths, depths, strict=True)):
        if level > 0:
            before = widths[level - 1]
            layers += [ChannelNorm(before), nn.Conv2d(before, width, 2, 2)]
        layers += [ConvNeXtBlock(width) for _ in range(depth)]
    last = widths[-1]
    pooled = (nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.LayerNorm(last))
    return nn.Sequential(*layers, *pooled, nn.Linear(last, 1000))


def vit_tiny() -> nn.Module:
    """Of 5.7 million parameters."""
    return VisionTransformer(width=192, heads=3, layers=12, classes=1000)


def convnext_atto() -> nn.Module:
    """Of 3.7 million parameters."""
    return convnext((40, 80, 160, 320), (2, 2, 6, 2))
