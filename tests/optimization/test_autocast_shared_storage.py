"""Tensors that share a storage in blocks of autocast with a layout: all of them are strided."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
import torch.distributed as dist
from autocast_networks import Images, images, stock, with_layout
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel
from torch.testing import assert_close


@pytest.fixture
def group(tmp_path: Path) -> Iterator[None]:
    store = dist.FileStore(str(tmp_path / "store"), 1)
    dist.init_process_group("gloo", store=store, rank=0, world_size=1)
    yield
    dist.destroy_process_group()


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32], ids=str)
def test_gradients_in_buckets(group: None, dtype: torch.dtype) -> None:
    """Of DistributedDataParallel: a bucket is one storage, the gradients are views of it."""
    trained = []
    for block in (stock("cpu", dtype), with_layout("cpu", dtype)):
        torch.manual_seed(0)
        model = DistributedDataParallel(Images(), gradient_as_bucket_view=True)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(3):
            with block:
                loss = model(images())[:, 0].float().log().neg().mean()
            optimizer.zero_grad(set_to_none=False)
            loss.backward()
            optimizer.step()
        grads = [each.grad for each in model.parameters()]
        assert all(each is not None and each.is_contiguous() for each in grads)
        owners = {
            each.untyped_storage().data_ptr() for each in grads if each is not None
        }
        assert len(owners) < len(grads)
        trained.append([each.detach() for each in model.parameters()])
    for expected, found in zip(*trained, strict=True):
        assert_close(found, expected, rtol=0.05, atol=0.01)


def in_one_storage(model: nn.Conv2d) -> Tensor:
    """The parameters become parts of the tensor that it returns."""
    flat = nn.utils.parameters_to_vector(model.parameters()).detach().clone()
    nn.utils.vector_to_parameters(flat, model.parameters())
    assert (
        model.weight.untyped_storage().data_ptr() == flat.untyped_storage().data_ptr()
    )
    return flat


@pytest.mark.parametrize("within", [False, True])
def test_parameters_in_one_storage(within: bool, device: str) -> None:
    """Weights are converted beside the parameter: a view sees plain values, and a write to
    the storage is seen by the next call."""
    model, x = nn.Conv2d(3, 8, 3).to(device), images(device=device)
    flat = in_one_storage(model)
    shape, strides = model.weight.shape, model.weight.stride()
    with torch.no_grad(), with_layout(device):
        before = model(x)
        view = flat.as_strided(shape, strides)
        assert torch.equal(view, model.weight)
        if within:
            view.mul_(2)
            found = model(x)
    if not within:
        view.mul_(2)
        with torch.no_grad(), with_layout(device):
            found = model(x)
    with torch.no_grad(), torch.autocast(device, torch.bfloat16):
        assert_close(found, model(x), rtol=0.02, atol=0.02)
    assert not torch.equal(found, before)


def test_images_as_strided(device: str) -> None:
    """Windows of a result, by strides of a plain tensor; writes are seen on both sides."""
    model, x = nn.Conv2d(3, 8, 3).to(device), images(device=device)
    found = []
    for block in (torch.autocast(device, torch.bfloat16), with_layout(device)):
        with torch.no_grad(), block:
            y = model(x)
            windows = y.as_strided((2, 8, 5, 4, 3), (336, 42, 6, 1, 1))
            found.append(windows.clone())
            y.add_(1)
            assert_close(windows, found[-1] + 1)
            windows[0].zero_()
            assert (y[0, :, :5] == 0).all()
    assert_close(found[1], found[0], rtol=0.02, atol=0.02)
