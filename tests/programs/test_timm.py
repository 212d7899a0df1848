"""Image models of timm, without pretrained weights."""

import functools

import pytest
import torch
import torch.nn.functional as F

from programs.training_steps import Batch, Loss, check

timm = pytest.importorskip("timm")

# Model, and the side of its images in pixels.
MODELS = {
    "resnet18": 64,
    "convnext_atto": 64,
    "mobilenetv3_small_050": 64,
    "vit_tiny_patch16_224": 224,
}


def loss(model: torch.nn.Module, batch: Batch) -> torch.Tensor:
    return F.cross_entropy(model(batch["images"]), batch["labels"])


def _made(name: str) -> tuple[torch.nn.Module, Batch, Loss]:
    model = timm.create_model(name, pretrained=False, num_classes=7, drop_rate=0.0)
    side = MODELS[name]
    images = torch.rand(4, 3, side, side)
    batch = {"images": images, "labels": torch.tensor([0, 3, 6, 1])}
    return model, batch, loss


MADE = {name: functools.partial(_made, name) for name in MODELS}


@pytest.mark.parametrize("name", MADE)
def test_training(name: str, xpu: torch.device) -> None:
    torch.manual_seed(0)
    check(*MADE[name](), xpu)
