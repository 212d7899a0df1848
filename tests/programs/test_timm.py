"""Image models of timm, without pretrained weights."""

import pytest
import torch
import torch.nn.functional as F

from programs.training_steps import check

timm = pytest.importorskip("timm")

# Model, and the side of its images in pixels.
MODELS = {
    "resnet18": 64,
    "convnext_atto": 64,
    "mobilenetv3_small_050": 64,
    "vit_tiny_patch16_224": 224,
}


@pytest.mark.parametrize("name", MODELS)
def test_training(name: str, xpu: torch.device) -> None:
    torch.manual_seed(0)
    model = timm.create_model(name, pretrained=False, num_classes=7, drop_rate=0.0)
    side = MODELS[name]
    images = torch.rand(4, 3, side, side)
    batch = {"images": images, "labels": torch.tensor([0, 3, 6, 1])}
    check(
        model,
        batch,
        lambda model, batch: F.cross_entropy(model(batch["images"]), batch["labels"]),
        xpu,
    )
