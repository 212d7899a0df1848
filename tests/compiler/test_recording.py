"""mode="reduce-overhead": compiled graphs of kernels are recorded and replayed."""

import gc
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.testing import assert_close

import xpurt
from xpurt.compiler import recording
from xpurt.compiler.recording import RecordedCode

pytestmark = pytest.mark.mappings("CPU")


@pytest.fixture
def records(xpu: torch.device) -> Iterator[torch.device]:
    """A device that records commands, under the policy sycl; without warnings."""
    try:
        torch.xpu.XPUGraph()
    except NotImplementedError as reason:
        pytest.skip(str(reason))
    torch.compiler.reset()
    with xpurt.kernel_policy("sycl"), warnings.catch_warnings():
        warnings.filterwarnings("error", "mode=")
        yield xpu
    torch.compiler.reset()
    gc.collect()


def fast(function: Callable[..., object]) -> Callable[..., Any]:
    return torch.compile(function, mode="reduce-overhead", fullgraph=True)


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[RecordedCode]:
    """The compiled graphs that record themselves."""
    found: list[RecordedCode] = []
    before = RecordedCode.__init__

    def init(self: RecordedCode, *args: object) -> None:
        before(self, *args)  # type: ignore[arg-type]
        found.append(self)

    monkeypatch.setattr(RecordedCode, "__init__", init)
    return found


def recordings(code: RecordedCode) -> int:
    return sum(map(len, code.recordings.values()))


def test_replays_compute_with_new_inputs(
    records: torch.device, made: list[RecordedCode]
) -> None:
    compiled = fast(lambda x, y: (x.sin() + y).softmax(-1).sum(0))
    for i in range(6):
        x, y = (torch.randn(8, 16, device=records) + i for _ in range(2))
        assert_close(compiled(x, y), (x.sin() + y).softmax(-1).sum(0))
    (code,) = made
    assert recordings(code) == 1


def test_live_results_are_not_overwritten(
    records: torch.device, made: list[RecordedCode]
) -> None:
    compiled = fast(lambda x: x * 2)
    found = [compiled(torch.full((4,), float(i), device=records)) for i in range(6)]
    assert [each.tolist() for each in found] == [[2.0 * i] * 4 for i in range(6)]
    views = [each[1:] for each in found]
    found.clear()
    for i in range(6):
        compiled(torch.full((4,), -1.0, device=records))
        assert views[i].tolist() == [2.0 * i] * 3
    assert recordings(made[0]) == recording.PER_KEY


def test_a_loop_that_binds_its_result_replays(
    records: torch.device, made: list[RecordedCode]
) -> None:
    """One result is alive while the next one is computed."""
    compiled = fast(lambda x: x + 1)
    x = torch.zeros(4, device=records)
    y = compiled(x)
    (code,) = made
    run, called = code.code, []

    def counted(inputs: list[Tensor]) -> Sequence[Tensor]:
        called.append(len(inputs))
        return run(inputs)

    code.code = counted
    for _ in range(9):
        y = compiled(x)
    assert y.tolist() == [1.0] * 4
    assert len(called) == recording.PER_KEY  # the captures


def test_other_sizes_are_recorded_anew(
    records: torch.device, made: list[RecordedCode]
) -> None:
    compiled = torch.compile(
        lambda x: x.cos() * 3, mode="reduce-overhead", dynamic=True
    )
    for _ in range(3):
        for size in (8, 5, 12):
            x = torch.randn(size, device=records)
            assert_close(compiled(x), x.cos() * 3)
    assert sum(map(recordings, made)) == 3


def test_parameters_are_read_where_they_are(
    records: torch.device, made: list[RecordedCode]
) -> None:
    model = nn.Linear(4, 4).to(records)
    compiled = torch.compile(model, mode="reduce-overhead")
    x = torch.randn(2, 4, device=records)
    with torch.no_grad():
        for _ in range(4):
            model.weight.add_(1)
            assert_close(compiled(x), model(x))
        model.weight.data = torch.randn(4, 4, device=records)
        for _ in range(3):
            assert_close(compiled(x), model(x))
    assert recordings(made[-1]) == 2


def test_inputs_that_are_written(records: torch.device) -> None:
    def step(total: Tensor, x: Tensor) -> Tensor:
        total.add_(x)
        return total * 2

    compiled = fast(step)
    total = torch.zeros(4, device=records)
    for i in range(1, 6):
        found = compiled(total, torch.ones(4, device=records))
        assert total.tolist() == [float(i)] * 4
        assert found.tolist() == [2.0 * i] * 4


def test_results_that_are_inputs_are_those_of_the_call(records: torch.device) -> None:
    compiled = fast(lambda x: (x, x.view(2, 2), x + 1))
    for i in range(5):
        x = torch.full((4,), float(i), device=records)
        same, view, other = compiled(x)
        assert same.data_ptr() == view.data_ptr() == x.data_ptr()
        assert other.tolist() == [i + 1.0] * 4


def test_each_replay_draws_other_numbers_as_without_recordings(
    records: torch.device,
) -> None:
    def drawn(mode: str) -> list[list[float]]:
        torch.compiler.reset()
        compiled = torch.compile(lambda x: torch.rand_like(x) + x, mode=mode)
        torch.manual_seed(5)
        x = torch.zeros(4, device=records)
        return [compiled(x).tolist() for _ in range(5)]

    found = drawn("reduce-overhead")
    assert len({tuple(each) for each in found}) == 5
    assert found == drawn("default")


def test_training(records: torch.device, made: list[RecordedCode]) -> None:
    def losses(mode: str) -> list[float]:
        torch.manual_seed(3)
        model = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 4)).to(records)
        steps = torch.optim.SGD(model.parameters(), 0.1)
        loss = torch.compile(lambda x: model(x).square().mean(), mode=mode)
        found = []
        for _ in range(10):
            value = loss(torch.randn(4, 8).to(records))
            steps.zero_grad()
            value.backward()
            steps.step()
            found.append(value.item())
        return found

    found = losses("reduce-overhead")
    assert [recordings(each) > 0 for each in made] == [True, True]
    torch.compiler.reset()
    assert_close(torch.tensor(found), torch.tensor(losses("default")))


def test_what_cannot_be_recorded_runs_with_a_warning(records: torch.device) -> None:
    held = torch.ones(4)
    compiled = torch.compile(lambda x, y: (x * y, y + 1), mode="reduce-overhead")
    x = torch.ones(4, device=records)
    with pytest.warns(
        RuntimeWarning, match="records no XPU graph: a graph has parts on"
    ):
        compiled(x, held[0])
    for i in range(4):
        assert compiled(x, held[0] * i)[0].tolist() == [float(i)] * 4


def test_a_wrong_index_of_earlier_work_is_no_failure_of_the_recording(
    records: torch.device, made: list[RecordedCode]
) -> None:
    compiled = fast(lambda x: x * 2 + 1)
    x = torch.ones(4, device=records)
    compiled(x)
    # Its wrong index is a RuntimeError.
    nn.functional.embedding_bag(x[None].long() + 8, torch.ones(3, 4, device=records))
    with pytest.raises(RuntimeError, match="submitted earlier"):
        compiled(x)
    torch.xpu.synchronize()
    assert compiled(x).tolist() == [3.0] * 4
    assert recordings(made[0]) == 1


@pytest.mark.mappings("GPU")
def test_a_device_that_cannot_record_says_so(xpu: torch.device) -> None:
    try:
        torch.xpu.XPUGraph()
    except NotImplementedError:
        pass
    else:
        pytest.skip("this device records commands")
    torch.compiler.reset()
    x = torch.ones(4, device=xpu)
    compiled = torch.compile(lambda x: x + 1, mode="reduce-overhead")
    with xpurt.kernel_policy("sycl"):
        with pytest.warns(
            RuntimeWarning, match="records no XPU graph: XPU graphs"
        ) as said:
            found = compiled(x)
        assert not any(".." in str(each.message) for each in said)
        assert found.tolist() == [2.0] * 4
