"""Tensors on several ordinals: copies, autograd, models that are split."""

from collections.abc import Callable, Iterator

import pytest
import torch

import xpurt
from xpurt import _C

PLACES: dict[str, dict[str, object]] = {
    "two devices": {"mapping": "explicit"},
    "two parts of a CPU": {"mapping": "explicit", "devices": "cpu", "partition": 2},
}


@pytest.fixture(params=PLACES.values(), ids=list(PLACES), autouse=True, scope="module")
def places(request: pytest.FixtureRequest) -> Iterator[None]:
    try:
        mapping = xpurt.xpu_mapping(**request.param)
        placement = mapping.__enter__()
    except xpurt.errors.MappingError as error:
        pytest.skip(f"this machine has no such mapping: {error}")
    if len(placement.ordinals) < 2:
        mapping.__exit__(None, None, None)
        pytest.skip("this machine has one device")
    yield
    mapping.__exit__(None, None, None)


BOTH_WAYS = pytest.mark.parametrize(
    ("start", "end"), [("xpu:0", "xpu:1"), ("xpu:1", "xpu:0")]
)


@BOTH_WAYS
def test_copies_keep_the_values(start: str, end: str) -> None:
    source = torch.arange(24.0).reshape(4, 6)
    for view in (source, source.t(), source[1:, ::2], source[:0]):
        there = view.to(start)
        moved = there.to(end)
        assert str(moved.device) == end
        assert torch.equal(moved.cpu(), view)
        target = torch.zeros(view.shape, dtype=torch.int32, device=end)
        assert torch.equal(target.copy_(there).cpu(), view.int())


@BOTH_WAYS
def test_a_strided_target_keeps_its_gaps(start: str, end: str) -> None:
    target = torch.zeros(4, 6, device=end)
    target[:, ::2].copy_(torch.ones(4, 3, device=start))
    assert target.cpu().tolist() == [[1, 0, 1, 0, 1, 0]] * 4


@BOTH_WAYS
def test_a_copy_waits_for_the_work_on_both_streams(start: str, end: str) -> None:
    source, target = (
        torch.zeros(100_000, device=start),
        torch.zeros(100_000, device=end),
    )
    streams = torch.xpu.Stream(start), torch.xpu.Stream(end)
    for stream in streams:
        stream.wait_stream(torch.xpu.current_stream(stream.device))
    with torch.xpu.stream(streams[0]), torch.xpu.stream(streams[1]):
        for i in range(4):
            xpurt._C._submit_sleep(streams[0].stream_id, streams[0].device_index, 0.02)
            xpurt._C._submit_sleep(streams[1].stream_id, streams[1].device_index, 0.02)
            source.fill_(float(i))
            target.fill_(-1.0)
            target.copy_(source, non_blocking=True)
            source.fill_(-2.0)
            assert target.cpu().unique().tolist() == [i]


@BOTH_WAYS
def test_gradients_go_back(start: str, end: str) -> None:
    leaf = torch.ones(3, device=start, requires_grad=True)
    (leaf.to(end) * torch.arange(3.0, device=end)).sum().backward()
    assert leaf.grad is not None
    assert str(leaf.grad.device) == start
    assert leaf.grad.tolist() == [0, 1, 2]


REFUSED: list[Callable[[torch.Tensor, torch.Tensor], object]] = [
    torch.add,
    torch.dot,
    torch.maximum,
    torch.Tensor.add_,
    lambda a, b: torch.cat([a, b]),
    lambda a, b: torch.mul(a, a, out=b),
    lambda a, b: a.addcmul_(a, b),
    lambda a, b: torch.ops.aten.threshold_backward(a, b, 0),
    lambda a, b: torch.layer_norm(a, (3,), b),
    lambda a, b: torch.stack((a, b)),
    lambda a, b: torch.conv1d(a[None, None], b[None, None]),
]


def test_operands_on_two_ordinals_are_refused() -> None:
    one, two = torch.ones(3, device="xpu:0"), torch.ones(3, device="xpu:1")
    for op in REFUSED:
        with pytest.raises(RuntimeError, match=r"same device.*xpu:[01] and xpu:[01]"):
            op(one, two)
    assert one.tolist() == two.tolist() == [1, 1, 1]


class Split(torch.nn.Module):
    def __init__(self, first: str, second: str) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.first = torch.nn.Linear(4, 8).to(first)
        self.second = torch.nn.Linear(8, 1).to(second)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        hidden = self.first(x.to(self.first.weight.device)).relu()
        return self.second(hidden.to(self.second.weight.device))


def test_a_model_on_two_ordinals_trains_as_on_the_cpu() -> None:
    torch.manual_seed(1)
    x, y = torch.randn(16, 4), torch.randn(16, 1)
    weights = []
    for places in (("cpu", "cpu"), ("xpu:0", "xpu:1")):
        model = Split(*places)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(5):
            optimizer.zero_grad()
            torch.nn.functional.mse_loss(model(x), y.to(places[1])).backward()
            optimizer.step()
        weights.append([p.detach().cpu() for p in model.parameters()])
    torch.testing.assert_close(*weights)


def test_code_for_the_host_takes_tensors_of_its_ordinal() -> None:
    mine = next(index for index in (1, 0) if _C.host_reads(index))
    code = _C.HostCode(lambda inputs: [], mine, [], [], [])
    with pytest.raises(
        RuntimeError, match=f"compiled for tensors of xpu:{mine}, called with"
    ):
        code([torch.ones(2, device=f"xpu:{1 - mine}")])
