"""One op on both devices: each computes a part of the result, and keeps it."""

from collections.abc import Callable, Iterator

import pytest
import torch
from torch.nn import functional as F

import xpurt
from auto.choices import Choices
from xpurt import _C

Xpu = Callable[[torch.Tensor], torch.Tensor]


class Split:
    """The share of the CPU and of the GPU, while it is set."""

    def __init__(self, choices: Choices) -> None:
        self.kinds = choices.kinds

    def set(self, **proportions: float) -> None:
        _C.testing.set_split_proportions([proportions[kind] for kind in self.kinds])

    def off(self) -> None:
        _C.testing.set_split_proportions([])

    def shards(self) -> dict[str, int]:
        return dict(zip(self.kinds, _C.testing.shards_run(0), strict=True))


@pytest.fixture
def split(choices: Choices) -> Iterator[Split]:
    made = Split(choices)
    made.set(cpu=0.6, gpu=0.4)
    yield made
    made.off()


def held(tensor: torch.Tensor) -> list[str]:
    kinds = {d.filter_string: d.kind for d in xpurt.physical_devices()}
    return sorted(kinds[each] for each in xpurt.where(tensor))


def both_ran(split: Split, before: dict[str, int]) -> bool:
    return all(split.shards()[kind] > before[kind] for kind in before)


N = 40_000
POINTWISE: dict[str, Callable[[torch.Tensor, torch.Tensor], torch.Tensor]] = {
    "add": lambda x, y: x + y,
    "chain": lambda x, y: (x * 2 - y).tanh().exp() * 0.5,
    "scalar tensor": lambda x, y: x * y[0],
    "in place": lambda x, y: x.clone().mul_(2).add_(y),
    "of a view": lambda x, y: x[1000:] * y[:-1000],
    "into a part": lambda x, y: x.clone().index_copy_(0, torch.tensor([3], device=x.device), y[:1]).neg_()[100:20100].mul(3),
    "strided": lambda x, y: x[::2] + y[1::2],
    "rows": lambda x, y: x.view(200, 200) + y[:200],
    "columns": lambda x, y: x.view(200, 200) * y[:200, None],
    "transposed": lambda x, y: x.view(200, 200).t() + y.view(200, 200),
    "half": lambda x, y: (x.half() + y.half()).float(),
    "compare": lambda x, y: (x > y).float(),
}  # fmt: skip


@pytest.mark.one_in(2)
@pytest.mark.parametrize("name", POINTWISE)
def test_pointwise_is_the_same_bit_for_bit(split: Split, name: str) -> None:
    torch.manual_seed(0)
    cpu = torch.randn(N), torch.randn(N)
    operation = POINTWISE[name]
    x, y = (each.to("xpu") for each in cpu)
    before = split.shards()
    parts = operation(x, y)
    assert both_ran(split, before)
    split.off()
    whole = operation(x, y)
    assert torch.equal(parts.cpu(), whole.cpu())
    torch.testing.assert_close(parts.cpu(), operation(*cpu), rtol=2e-3, atol=1e-3)


def conv_gradients(
    to: Xpu,
    conv: Callable[..., torch.Tensor],
    images: tuple[int, ...],
    weight: tuple[int, ...],
    memory_format: torch.memory_format = torch.contiguous_format,
) -> torch.Tensor:
    """The gradients of the images, the weight and the bias, in one tensor."""
    x = torch.randn(images).to(memory_format=memory_format)
    x, w, b = (to(each) for each in (x, torch.randn(weight), torch.randn(6)))
    y = conv(x.requires_grad_(), w.requires_grad_(), b.requires_grad_(), padding=1)
    found = torch.autograd.grad(y, (x, w, b), to(torch.randn(y.shape)))
    return torch.cat([each.flatten() for each in found])


ROWS: dict[str, Callable[[Xpu], torch.Tensor]] = {
    "sum": lambda to: to(torch.randn(101, 300)).sum(1),
    "amax": lambda to: to(torch.randn(101, 30, 20)).amax((1, 2), keepdim=True),
    "mean of columns": lambda to: to(torch.randn(7, 90, 33)).mean(1),
    "softmax": lambda to: torch.softmax(to(torch.randn(99, 130)), -1),
    "softmax of columns": lambda to: torch.softmax(to(torch.randn(9, 13, 17)), 1),
    "log_softmax": lambda to: torch.log_softmax(to(torch.randn(99, 13)), -1),
    "layer_norm": lambda to: F.layer_norm(
        to(torch.randn(77, 64)), (64,), to(torch.rand(64)), to(torch.rand(64))
    ),
    "mm": lambda to: to(torch.randn(130, 70)) @ to(torch.randn(70, 50)),
    "mm of transposed": lambda to: to(torch.randn(70, 130)).t() @ to(torch.randn(70, 5)),
    "mm along the inner dimension": lambda to: to(torch.randn(130, 20)).t() @ to(
        torch.randn(130, 50)
    ),
    "addmm": lambda to: torch.addmm(
        to(torch.randn(130, 50)), to(torch.randn(130, 70)), to(torch.randn(70, 50))
    ),
    "linear": lambda to: F.linear(
        to(torch.randn(130, 70)), to(torch.randn(20, 70)), to(torch.randn(20))
    ),
    "addmm_": lambda to: to(torch.randn(130, 50)).addmm_(
        to(torch.randn(130, 70)), to(torch.randn(70, 50)), beta=2, alpha=0.5
    ),
    "bmm": lambda to: to(torch.randn(11, 20, 30)).bmm(to(torch.randn(11, 30, 5))),
    "baddbmm": lambda to: torch.baddbmm(
        to(torch.randn(11, 20, 5)), to(torch.randn(11, 20, 30)), to(torch.randn(11, 30, 5))
    ),
    "conv": lambda to: F.conv2d(
        to(torch.randn(9, 4, 12, 12)), to(torch.randn(6, 4, 3, 3)), to(torch.randn(6))
    ),
    "conv, channels last": lambda to: F.conv2d(
        to(torch.randn(9, 4, 12, 12).to(memory_format=torch.channels_last)),
        to(torch.randn(6, 4, 3, 3)), padding=1,
    ),
    "conv's gradients": lambda to: conv_gradients(to, F.conv2d, (9, 4, 12, 12), (6, 4, 3, 3)),
    "conv's gradients, channels last": lambda to: conv_gradients(
        to, F.conv2d, (9, 4, 12, 12), (6, 4, 3, 3), torch.channels_last
    ),
    "transposed conv's gradients": lambda to: conv_gradients(
        to, F.conv_transpose2d, (9, 4, 12, 12), (4, 6, 3, 3)
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", ROWS)
def test_rows(split: Split, name: str) -> None:
    torch.manual_seed(0)
    before = split.shards()
    parts = ROWS[name](lambda tensor: tensor.to("xpu"))
    assert both_ran(split, before)
    torch.manual_seed(0)
    expected = ROWS[name](lambda tensor: tensor)
    assert parts.stride() == expected.stride()
    torch.testing.assert_close(parts.cpu(), expected, rtol=1e-4, atol=1e-4)


def test_samples_that_are_divided_stay_for_the_gradient_of_a_weight(
    split: Split,
) -> None:
    grad, x = (torch.ones(4000, n, device="xpu") * 2 for n in (20, 50))
    before = sum(size for _, size in _C.testing.transfers_to(0))
    of_weight = grad.t() @ x
    moved = sum(size for _, size in _C.testing.transfers_to(0)) - before
    # A partial sum goes home, and nothing else.
    assert moved <= 2 * of_weight.nbytes
    assert of_weight.cpu().unique().tolist() == [16_000.0]


@pytest.mark.parametrize(
    "write",
    [
        lambda out, _: out.fill_(2),
        lambda out, x: out.copy_(x),
        lambda out, x: torch.add(x, 1, out=out),
        lambda out, x: torch.mm(x, x, out=out),
    ],
    ids=["fill_", "copy_", "add", "mm"],
)
def test_what_is_overwritten_is_not_moved(write, choices: Choices) -> None:
    choices.gpu()
    x = torch.ones(64, 64, device="xpu") * 1
    choices.cpu()
    out = torch.zeros(64, 64, device="xpu") * 1
    before = _C.testing.transfers_to(0)
    choices.gpu()
    write(out, x)
    assert _C.testing.transfers_to(0) == before
    assert held(out) == ["gpu"]


def test_shards_stay_where_they_are(split: Split) -> None:
    split.off()
    x = torch.zeros(1 << 20, device="xpu")
    split.set(cpu=0.6, gpu=0.4)
    before = _C.testing.transfers_to(0)
    y = x + 1
    for _ in range(5):
        y = y * 2
        y.add_(1)
    moved = [
        (count - count_before, size - size_before)
        for (count_before, size_before), (count, size) in zip(
            before, _C.testing.transfers_to(0), strict=True
        )
    ]
    # The GPU's part of x, once, and nothing else.
    (to_cpu,) = (m for m, kind in zip(moved, split.kinds, strict=True) if kind == "cpu")
    (to_gpu,) = (m for m, kind in zip(moved, split.kinds, strict=True) if kind == "gpu")
    assert to_cpu == (0, 0)
    assert to_gpu[0] == 1
    assert abs(to_gpu[1] / (4 << 20) - 0.4) < 0.01
    assert held(y) == []
    assert y.cpu().unique().tolist() == [63.0]


def test_ops_that_are_not_split_find_all_of_it(split: Split) -> None:
    x = torch.arange(1 << 16, device="xpu").float()
    y = x + 1
    split.off()
    assert held(y) == []
    expected = torch.arange(1 << 16).float() + 1
    assert torch.equal(torch.flip(y, [0]).cpu(), expected.flip(0))  # native
    split.set(cpu=0.5, gpu=0.5)
    y = x + 1
    split.off()
    with xpurt.prefer("gpu"):
        z = y * 2
    assert torch.equal(z.cpu(), expected * 2)


def test_shares_decide(split: Split) -> None:
    x = torch.ones(1 << 16, device="xpu")
    split.set(cpu=1, gpu=0)
    before = split.shards()
    assert (x + 1).cpu().unique().tolist() == [2.0]
    assert split.shards() == before
    split.set(cpu=0.1, gpu=1)
    y = x + 1
    assert both_ran(split, before)
    assert y.cpu().unique().tolist() == [2.0]
    with pytest.raises(ValueError, match="proportions"):
        _C.testing.set_split_proportions([-1, 2])


def test_what_is_small_or_may_not_leave_home_is_whole(split: Split) -> None:
    before = split.shards()
    small = torch.ones(100, device="xpu") + 1
    shared = xpurt.share(torch.ones(1 << 16)) * 2
    assert small.sum().item() == 200
    assert shared.sum().item() == 2 << 16
    x = torch.zeros(1 << 14, device="xpu")
    after = split.shards()
    x.data_ptr()
    x += 1
    assert split.shards() == after
    assert before["gpu"] <= after["gpu"]


def test_gradients(split: Split) -> None:
    torch.manual_seed(0)
    model = torch.nn.Sequential(
        torch.nn.Linear(64, 128), torch.nn.GELU(), torch.nn.LayerNorm(128),
        torch.nn.Linear(128, 10),
    )  # fmt: skip
    x, target = torch.randn(200, 64), torch.randint(10, (200,))
    F.cross_entropy(model(x), target).backward()
    expected = [p.grad.clone() for p in model.parameters()]
    model.zero_grad()
    model.to("xpu")
    before = split.shards()
    F.cross_entropy(model(x.to("xpu")), target.to("xpu")).backward()
    assert both_ran(split, before)
    for parameter, grad in zip(model.parameters(), expected, strict=True):
        torch.testing.assert_close(parameter.grad.cpu(), grad, rtol=1e-3, atol=1e-5)
