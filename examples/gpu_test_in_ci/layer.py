"""The code under test: a layer that was written for GPUs."""

import torch
from torch import nn


class ScaledAttention(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.project = nn.Linear(width, 3 * width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        query, key, value = self.project(x).chunk(3, dim=-1)
        weights = torch.softmax(query @ key.transpose(-2, -1), dim=-1)
        return weights @ value
