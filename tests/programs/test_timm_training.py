"""The steps of timm's training script, which its wheel leaves out: images in folders, its
loader, optimizer, scheduler, mixup, averaged weights and checkpoints."""

from argparse import Namespace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

timm = pytest.importorskip("timm")
image = pytest.importorskip("PIL.Image")
for part in ("data", "loss", "optim", "scheduler", "utils"):
    pytest.importorskip(f"timm.{part}")

CLASSES, EACH, SIDE = 3, 4, 32


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Four images in each of three classes."""
    for label in range(CLASSES):
        place = tmp_path / "images" / f"class{label}"
        place.mkdir(parents=True)
        for each in range(EACH):
            pixels = torch.randint(0, 256, (SIDE, SIDE, 3), dtype=torch.uint8)
            image.fromarray(pixels.numpy()).save(place / f"{each}.png")
    return tmp_path / "images"


def loader(folder: Path, device: torch.device, **options: Any) -> Any:
    return timm.data.create_loader(
        timm.data.create_dataset("", root=str(folder)),
        input_size=(3, SIDE, SIDE),
        batch_size=4,
        num_workers=0,
        device=device,
        persistent_workers=False,
        **options,
    )


def trained(
    folder: Path, device: torch.device, *, optimizer: str = "adamw", epochs: int = 1
) -> tuple[list[float], Any, dict[str, float]]:
    """The losses of each step, the averaged model, and what validation counts."""
    timm.utils.random_seed(0)
    model = timm.create_model("resnet10t", num_classes=CLASSES).to(device)
    chosen = timm.optim.create_optimizer_v2(
        model, opt=optimizer, lr=1e-3, weight_decay=0.05
    )
    average = timm.utils.ModelEmaV3(model, decay=0.9)
    schedule, _ = timm.scheduler.create_scheduler_v2(
        chosen, sched="cosine", num_epochs=4, warmup_epochs=1, warmup_lr=1e-4
    )
    mixup = timm.data.Mixup(mixup_alpha=0.2, cutmix_alpha=1.0, num_classes=CLASSES)
    criterion = timm.loss.SoftTargetCrossEntropy()
    scaler = timm.utils.NativeScaler(device=device.type)
    given = loader(folder, device, is_training=False, use_prefetcher=True)
    losses = []
    for epoch in range(epochs):
        model.train()
        for images, labels in given:
            assert images.device.type == labels.device.type == device.type
            images, labels = mixup(images, labels)
            chosen.zero_grad()
            loss = criterion(model(images), labels)
            scaler(loss, chosen, clip_grad=1.0, parameters=model.parameters())
            average.update(model)
            losses.append(loss.item())
        schedule.step(epoch + 1)
    return losses, average.module, validated(average.module, given)


def validated(model: nn.Module, given: Any) -> dict[str, float]:
    model.eval()
    losses, first = timm.utils.AverageMeter(), timm.utils.AverageMeter()
    with torch.no_grad():
        for images, labels in given:
            output = model(images)
            losses.update(nn.functional.cross_entropy(output, labels).item(), 4)
            first.update(timm.utils.accuracy(output, labels, topk=(1,))[0].item(), 4)
    return {"loss": losses.avg, "top1": first.avg}


def test_losses_are_the_cpu_s(folder: Path, xpu: torch.device) -> None:
    expected, _, counted = trained(folder, torch.device("cpu"), epochs=2)
    found, _, counted_there = trained(folder, xpu, epochs=2)
    torch.testing.assert_close(found, expected, rtol=2e-3, atol=0)
    assert expected[0] != expected[-1]
    assert counted_there["loss"] == pytest.approx(counted["loss"], rel=2e-3)


@pytest.mark.parametrize("optimizer", ["lamb", "adopt", "lion"])
def test_optimizers_of_timm(optimizer: str, folder: Path, xpu: torch.device) -> None:
    expected, *_ = trained(folder, torch.device("cpu"), optimizer=optimizer)
    found, *_ = trained(folder, xpu, optimizer=optimizer)
    torch.testing.assert_close(found, expected, rtol=2e-3, atol=0)


def test_augmented_images(folder: Path, xpu: torch.device) -> None:
    """The prefetcher erases on the device, with its random numbers."""
    given = loader(
        folder,
        xpu,
        is_training=True,
        use_prefetcher=True,
        re_prob=1.0,
        re_mode="pixel",
        auto_augment="rand-m9-mstd0.5-inc1",
    )
    batches = list(given)
    assert len(batches) == CLASSES * EACH // 4
    for images, labels in batches:
        assert images.device == labels.device == xpu
        assert bool(images.isfinite().all())


def test_a_checkpoint_resumes(folder: Path, xpu: torch.device, tmp_path: Path) -> None:
    model = timm.create_model("resnet10t", num_classes=CLASSES).to(xpu)
    optimizer = timm.optim.create_optimizer_v2(model, opt="adamw", lr=1e-3)
    model(torch.rand(2, 3, SIDE, SIDE, device=xpu)).sum().backward()
    optimizer.step()
    saver = timm.utils.CheckpointSaver(
        model,
        optimizer,
        args=Namespace(model="resnet10t"),
        checkpoint_dir=str(tmp_path),
        recovery_dir=str(tmp_path),
    )
    saver.save_checkpoint(epoch=0, metric=1.0)
    other = timm.create_model("resnet10t", num_classes=CLASSES).to(xpu)
    chosen = timm.optim.create_optimizer_v2(other, opt="adamw", lr=1e-3)
    timm.models.resume_checkpoint(other, str(tmp_path / "last.pth.tar"), chosen)
    for one, two in zip(
        model.state_dict().values(), other.state_dict().values(), strict=True
    ):
        assert two.device == xpu
        assert torch.equal(one.cpu(), two.cpu())
    assert {
        each["exp_avg"].device for each in chosen.state.values() if "exp_avg" in each
    } == {xpu}


def test_the_device_that_its_script_asks_for(xpu: torch.device) -> None:
    args = Namespace(device="xpu", dist_backend=None, dist_url=None)
    assert timm.utils.init_distributed_device(args).type == "xpu"
    assert not args.distributed
