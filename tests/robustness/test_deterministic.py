"""torch.use_deterministic_algorithms: what fills memory, what repeats, what raises."""

from collections.abc import Callable, Iterator

import pytest
import torch
import torch.nn.functional as F

import xpurt

DTYPES = [
    torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.float8_e4m3fn,
    torch.complex64, torch.bool, torch.int8, torch.uint8, torch.int16, torch.uint16,
    torch.int32, torch.uint32, torch.int64, torch.uint64,
]  # fmt: skip


@pytest.fixture
def deterministic() -> Iterator[None]:
    # Compiled code and some ops import these functions. Some refuse deterministic mode.
    import torch._meta_registrations

    torch.use_deterministic_algorithms(True)
    yield
    torch.use_deterministic_algorithms(False)


Maker = Callable[[torch.device, torch.dtype], torch.Tensor]
MAKERS: dict[str, Maker] = {
    "empty": lambda d, t: torch.empty(3, 4, dtype=t, device=d),
    "channels_last": lambda d, t: torch.empty(
        1, 2, 3, 4, dtype=t, device=d, memory_format=torch.channels_last
    ),
    "empty_strided": lambda d, t: torch.empty_strided(
        (2, 3), (1, 2), dtype=t, device=d
    ),
    "empty_permuted": lambda d, t: torch.empty_permuted(
        (2, 3), (1, 0), dtype=t, device=d
    ),
    "empty_like": lambda d, t: torch.empty_like(torch.ones(3, device=d), dtype=t),
    "new_empty": lambda d, t: torch.ones(2, device=d).new_empty(3, dtype=t),
    "new_empty_strided": lambda d, t: torch.ones(2, device=d).new_empty_strided(
        (2, 3), (3, 1), dtype=t
    ),
    "resize_": lambda d, t: torch.ones(2, device=d).to(t).resize_(3, 5),
    "resize_ of none": lambda d, t: torch.ones(0, device=d).to(t).resize_(5),
    "resize_ at an offset": lambda d, t: torch.ones(4, device=d).to(t)[2:].resize_(7),
    "resize_as_": lambda d, t: (
        torch.ones(2, device=d).to(t).resize_as_(torch.ones(5, device=d))
    ),
}


@pytest.mark.parametrize("make", MAKERS.values(), ids=list(MAKERS))
def test_memory_that_nobody_wrote_is_filled(
    make: Maker, xpu: torch.device, deterministic: None
) -> None:
    for dtype in DTYPES:
        found, expected = make(xpu, dtype).cpu(), make(torch.device("cpu"), dtype)
        assert found.stride() == expected.stride()
        bits = [t.flatten().contiguous().view(torch.uint8) for t in (found, expected)]
        assert torch.equal(*bits), dtype


def test_nothing_is_filled_unasked(xpu: torch.device, deterministic: None) -> None:
    torch.utils.deterministic.fill_uninitialized_memory = False
    try:
        kept = torch.zeros(1000, device=xpu)
        kept.fill_(5)
        del kept
        assert torch.empty(1000, device=xpu).isnan().sum().item() == 0
    finally:
        torch.utils.deterministic.fill_uninitialized_memory = True


def repeated(size: int, of: int) -> torch.Tensor:
    """Indices below `of`, each of them many times, in no order."""
    return torch.arange(size) * 7919 % of


def gradient(
    f: Callable[[torch.Tensor], torch.Tensor], x: torch.Tensor
) -> torch.Tensor:
    x.requires_grad_()
    result = f(x)
    weights = torch.linspace(-1, 1, result.numel(), device=x.device)
    return torch.autograd.grad(result, x, weights.view(result.shape))[0]


Op = Callable[[torch.Tensor, torch.Tensor, torch.Tensor], torch.Tensor]
# x: 97 zeros. i: indices into it, some equal. v: as many numbers.
WRITES: dict[str, Op] = {
    "index_put": lambda x, i, v: x.index_put_((i,), v),
    "index_put, added": lambda x, i, v: x.index_put_((i,), v, accumulate=True),
    "put, added": lambda x, i, v: x.put_(i, v, accumulate=True),
    "scatter": lambda x, i, v: x.scatter_(0, i, v),
    "scatter_add": lambda x, i, v: x.scatter_add_(0, i, v),
    "scatter_reduce": lambda x, i, v: (x + 1).scatter_reduce_(0, i, v, "prod"),
    "index_add": lambda x, i, v: x.index_add_(0, i, v),
    "index_copy": lambda x, i, v: x.index_copy_(0, i, v),
    "index_reduce": lambda x, i, v: x.index_reduce_(0, i, v, "mean"),
    "bincount": lambda x, i, v: torch.bincount(i, v),
    "histc": lambda x, i, v: torch.histc(v, 50),
    "cumsum": lambda x, i, v: v.cumsum(0),
    "kthvalue": lambda x, i, v: v.round().kthvalue(99)[1],
    "median": lambda x, i, v: v.round().median(0)[1],
    "embedding": lambda x, i, v: gradient(
        lambda w: F.embedding(i, w), x.view(-1, 1) + 1
    ),
    "embedding_bag": lambda x, i, v: gradient(
        lambda w: F.embedding_bag(i.view(-1, 10), w, mode="max"),
        x.view(-1, 1) + torch.arange(97, device=x.device).view(-1, 1),
    ),
    "gather": lambda x, i, v: gradient(lambda w: w.gather(0, i), x),
    "index": lambda x, i, v: gradient(lambda w: w[i], x),
    "index_select": lambda x, i, v: gradient(lambda w: w.index_select(0, i), x),
}
# Gradients with respect to images of 2x3x20x21.
IMAGES: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "bilinear": lambda t: F.interpolate(t, size=(33, 31), mode="bilinear"),
    "bicubic": lambda t: F.interpolate(t, size=(33, 31), mode="bicubic"),
    "nearest": lambda t: F.interpolate(t, size=(33, 31)),
    "trilinear": lambda t: F.interpolate(t[None], size=(5, 33, 31), mode="trilinear"),
    "grid_sample": lambda t: F.grid_sample(
        t, (t[:, :2].detach() % 1).permute(0, 2, 3, 1), align_corners=False
    ),
    "reflection": lambda t: F.pad(t, (5, 6, 7, 8), "reflect"),
    "replication": lambda t: F.pad(t, (5, 6, 7, 8), "replicate"),
    "avg_pool3d": lambda t: F.avg_pool3d(t[None], 3, 1),
    "max_pool3d": lambda t: F.max_pool3d(t[None], 3, 1),
    "adaptive_avg_pool2d": lambda t: F.adaptive_avg_pool2d(t, (4, 5)),
    "adaptive_max_pool2d": lambda t: F.adaptive_max_pool2d(t, (4, 5)),
}


@pytest.mark.parametrize(
    "policy", ["sycl", pytest.param("native", marks=pytest.mark.slow)]
)
@pytest.mark.parametrize("op", WRITES.values(), ids=list(WRITES))
def test_writes_to_the_same_place_repeat(
    op: Op, policy: str, xpu: torch.device, deterministic: None
) -> None:
    i, v = repeated(20_000, 97), torch.sin(torch.arange(20_000.0)) * 3
    expected = op(torch.zeros(97), i, v)
    with xpurt.kernel_policy(policy):
        i, v = i.to(xpu), v.to(xpu)
        found = [op(torch.zeros(97, device=xpu), i, v).cpu() for _ in range(4)]
    for each in found[1:]:
        assert torch.equal(each, found[0])
    if found[0].is_floating_point():  # which of equal elements is chosen is not defined
        torch.testing.assert_close(found[0], expected, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("op", IMAGES.values(), ids=list(IMAGES))
def test_gradients_of_images_repeat(
    op: Callable[[torch.Tensor], torch.Tensor], xpu: torch.device, deterministic: None
) -> None:
    image = torch.sin(torch.arange(2 * 3 * 20 * 21.0)).view(2, 3, 20, 21)
    with xpurt.kernel_policy("sycl"):
        found = [gradient(op, image.to(xpu)).cpu() for _ in range(4)]
    for each in found[1:]:
        assert torch.equal(each, found[0])
    torch.testing.assert_close(found[0], gradient(op, image), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("policy", ["sycl", "auto", "native"])
def test_what_keeps_no_order_raises(
    policy: str, xpu: torch.device, deterministic: None
) -> None:
    i, v = repeated(200, 97).to(xpu), torch.ones(200, device=xpu)
    image = torch.ones(1, 1, 4, 4, device=xpu)
    places = (torch.arange(16, device=xpu) % 7).view(1, 1, 4, 4)
    cases = {
        "put_": lambda: torch.zeros(97, device=xpu).put_(i, v),
        "max_unpooling2d": lambda: F.max_unpool2d(image, places, 2),
        "max_unpooling3d": lambda: F.max_unpool3d(image[None], places[None], 2),
    }
    with xpurt.kernel_policy(policy):
        for name, use in cases.items():
            with pytest.raises(RuntimeError, match=f"{name}.* deterministic"):
                use()
