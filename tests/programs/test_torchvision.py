"""The ops of torchvision, whose kernels are for the CPU and CUDA, and models of it."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

import xpurt
from programs.training_steps import Batch, check
from xpurt.testing.oracle import agree

torchvision = pytest.importorskip("torchvision")
ops = torchvision.ops
v2 = pytest.importorskip("torchvision.transforms.v2")
tv_tensors = pytest.importorskip("torchvision.tv_tensors")

SIDE = 32  # of images, in pixels


def boxes(count: int) -> Tensor:
    corners = torch.rand(count, 2) * SIDE / 2
    return torch.cat([corners, corners + torch.rand(count, 2) * SIDE / 2 + 1], 1)


def regions(count: int) -> Tensor:
    """Boxes of two images."""
    return torch.cat([(torch.arange(count) % 2).float()[:, None], boxes(count)], 1)


def images() -> Tensor:
    return torch.rand(2, 8, SIDE, SIDE, requires_grad=True)


def deformed(with_mask: bool) -> tuple[Callable[..., Tensor], tuple[Tensor, ...]]:
    def convolution(x: Tensor, offset: Tensor, *others: Tensor) -> Tensor:
        return ops.deform_conv2d(x, offset, *others[:2], mask=(*others, None)[2])

    shapes = [(2, 18, 30, 30), (4, 8, 3, 3), (4,), (2, 9, 30, 30)][: 3 + with_mask]
    return convolution, (
        images(),
        *(torch.rand(each, requires_grad=True) for each in shapes),
    )


CALLS: dict[str, Callable[[], tuple[Callable[..., Any], tuple[Any, ...]]]] = {
    "nms": lambda: (ops.nms, (boxes(50), torch.rand(50), 0.5)),
    "batched_nms": lambda: (
        ops.batched_nms,
        (boxes(50), torch.rand(50), torch.arange(50) % 3, 0.5),
    ),
    "roi_align": lambda: (ops.roi_align, (images(), regions(20), (3, 3), 1.0, 2, True)),
    "roi_pool": lambda: (ops.roi_pool, (images(), regions(20), (3, 3))),
    "ps_roi_align": lambda: (ops.ps_roi_align, (images(), regions(20), (2, 2))),
    "ps_roi_pool": lambda: (ops.ps_roi_pool, (images(), regions(20), (2, 2))),
    "deform_conv2d": lambda: deformed(with_mask=False),
    "deform_conv2d, mask": lambda: deformed(with_mask=True),
    "box_iou": lambda: (ops.box_iou, (boxes(20), boxes(30))),
    "generalized_box_iou_loss": lambda: (
        ops.generalized_box_iou_loss,
        (boxes(20).requires_grad_(), boxes(20)),
    ),
    "sigmoid_focal_loss": lambda: (
        ops.sigmoid_focal_loss,
        (torch.randn(20, 3, requires_grad=True), torch.rand(20, 3).round()),
    ),
    "masks_to_boxes": lambda: (ops.masks_to_boxes, (torch.rand(3, 9, 9) > 0.8,)),
}
# What has a C++ kernel of torchvision's: it takes the device's memory, or a copy.
NATIVE = ("nms", "roi_align", "roi_pool", "ps_roi_align", "ps_roi_pool")


@pytest.mark.parametrize("name", CALLS)
def test_ops_and_their_gradients(name: str, xpu: torch.device) -> None:
    function, arguments = CALLS[name]()
    xpurt.op_report(reset=True)
    agree(function, *arguments, device=xpu, rtol=1e-4, atol=1e-4)
    tiers = {
        row.tier for row in xpurt.op_report().rows if row.op == f"torchvision::{name}"
    }
    if name in NATIVE:
        on_gpu = xpurt.get_xpu_mapping() in ("explicit", "GPU")
        assert tiers == {"copy" if on_gpu else "native"}


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
def test_regions_under_autocast(dtype: torch.dtype, xpu: torch.device) -> None:
    def align(x: Tensor, rois: Tensor) -> Tensor:
        with torch.autocast(x.device.type, dtype):
            return ops.roi_align(x, rois, (3, 3))

    agree(align, images().detach().to(dtype), regions(20), device=xpu)


def test_boxes_are_suppressed_in_a_compiled_function(xpu: torch.device) -> None:
    def kept(boxes: Tensor, scores: Tensor) -> Tensor:
        return ops.nms(boxes * 2, scores.sigmoid(), 0.5)

    torch._dynamo.reset()
    agree(torch.compile(kept), boxes(50), torch.randn(50), device=xpu)
    torch._dynamo.reset()


def test_transforms(xpu: torch.device) -> None:
    """An image, its boxes and its mask, with the random numbers of the host."""
    chain = v2.Compose(
        [
            v2.ToDtype({tv_tensors.Image: torch.float32, "others": None}, scale=True),
            v2.RandomHorizontalFlip(1.0),
            v2.Resize((24, 24), antialias=True),
            v2.RandomCrop(20),
            v2.ColorJitter(0.3, 0.3, 0.3),
            v2.GaussianBlur(3, sigma=1.0),
            v2.RandomAffine(10.0),
            v2.Normalize([0.5] * 3, [0.2] * 3),
        ]
    )

    def changed(image: Tensor, corners: Tensor, mask: Tensor) -> list[Tensor]:
        torch.manual_seed(0)
        given = (
            tv_tensors.Image(image),
            tv_tensors.BoundingBoxes(corners, format="XYXY", canvas_size=(SIDE, SIDE)),
            tv_tensors.Mask(mask),
        )
        return [each.as_subclass(Tensor) for each in chain(*given)]

    image = torch.randint(0, 256, (3, SIDE, SIDE), dtype=torch.uint8)
    mask = torch.randint(0, 2, (1, SIDE, SIDE), dtype=torch.uint8)
    agree(changed, image, boxes(4), mask, device=xpu, rtol=1e-4, atol=1e-4)


def detector() -> torch.nn.Module:
    torch.manual_seed(0)
    model: torch.nn.Module = (
        torchvision.models.detection.fasterrcnn_mobilenet_v3_large_320_fpn(
            weights=None,
            weights_backbone=None,
            num_classes=3,
            min_size=64,
            max_size=64,
            # All candidates are taken: a choice would be random.
            rpn_batch_size_per_image=10**4,
            box_batch_size_per_image=10**4,
        )
    )
    return model


def detection_loss(model: torch.nn.Module, batch: Batch) -> Tensor:
    targets = [
        {"boxes": batch["boxes"][i], "labels": batch["labels"][i]} for i in range(2)
    ]
    parts = model(list(batch["images"]), targets)
    total: Tensor = sum(parts.values(), torch.zeros((), device=batch["images"].device))
    return total


def test_a_detector_trains(xpu: torch.device) -> None:
    model = detector()
    batch = {
        "images": torch.rand(2, 3, 64, 64),
        "boxes": torch.tensor([[[4.0, 4, 30, 40]], [[20.0, 10, 60, 50]]]),
        "labels": torch.tensor([[1], [2]]),
    }
    # AdamW's first step is as large for a gradient of rounding as for any other.
    check(model, batch, detection_loss, xpu, torch.optim.SGD)


def test_a_detector_finds_the_same_boxes(xpu: torch.device) -> None:
    model = detector().eval()
    found = {}
    given = torch.rand(2, 3, 64, 64)
    for device in ("cpu", xpu):
        model.to(device)
        with torch.no_grad():
            found[device] = [
                {name: x.cpu() for name, x in each.items()}
                for each in model(list(given.to(device)))
            ]
    torch.testing.assert_close(found[xpu], found["cpu"], rtol=1e-3, atol=1e-3)
    assert all(len(each["boxes"]) for each in found["cpu"])


def classification_loss(model: torch.nn.Module, batch: Batch) -> Tensor:
    return F.cross_entropy(model(batch["images"]), batch["labels"])


IMAGE_MODELS: dict[str, Callable[[], torch.nn.Module]] = {
    "shufflenet": lambda: torchvision.models.shufflenet_v2_x0_5(num_classes=7),
    "swin": lambda: torchvision.models.SwinTransformer(
        patch_size=[4, 4],
        embed_dim=16,
        depths=[2, 2],
        num_heads=[2, 4],
        window_size=[4, 4],
        stochastic_depth_prob=0.0,
        num_classes=7,
    ),
}


@pytest.mark.parametrize("name", IMAGE_MODELS)
def test_an_image_model_trains(name: str, xpu: torch.device) -> None:
    torch.manual_seed(0)
    # In float64: a batch norm of a few values makes much of a rounding.
    model = IMAGE_MODELS[name]().double()
    batch = {
        "images": torch.rand(2, 3, 64, 64).double(),
        "labels": torch.tensor([0, 3]),
    }
    check(model, batch, classification_loss, xpu, torch.optim.SGD)
