"""A graph replays at addresses, so what it uses is never copied lazily."""

from collections.abc import Callable

import pytest
import torch

import xpurt
from xpurt import _C

pytestmark = pytest.mark.usefixtures("lazily")


def captured(work: Callable[[], torch.Tensor]) -> tuple[object, torch.Tensor]:
    graph = torch.xpu.XPUGraph()
    with torch.xpu.graph(graph):
        result = work()
    return graph, result


def test_work_on_a_lazy_copy_is_refused() -> None:
    copy = torch.ones(1000).to("xpu")
    assert _C.is_lazy(copy)
    with pytest.raises(RuntimeError, match="lazy copy"):
        captured(lambda: copy * 2)
    copy.data_ptr()
    graph, result = captured(lambda: copy * 2)
    graph.replay()
    assert result.cpu().unique().tolist() == [2.0]


def test_what_a_graph_reads_or_writes_is_copied() -> None:
    source = torch.ones(1000, device="xpu")
    graph, result = captured(lambda: source.add_(1) * 2)
    found = []
    for _ in range(2):
        graph.replay()
        copies = source.cpu(), result.cpu()
        assert not any(_C.is_lazy(copy) for copy in copies)
        found.append(copies)
    torch.xpu.synchronize()
    values = [[c.unique().tolist() for c in copies] for copies in found]
    assert values == [[[2.0], [4.0]], [[3.0], [6.0]]]


def test_collectives_and_ops_of_others_get_memory_of_their_own() -> None:
    library = torch.library.Library("xpurt_lazy_test", "DEF")
    library.define("writes(Tensor x) -> ()")  # the schema does not declare the write

    def writes(x: torch.Tensor) -> None:
        x.numpy()[:] = 7

    library.impl("writes", writes, "CPU")
    source = torch.ones(10)
    copy = source.to("xpu")
    with xpurt.kernel_policy("auto"):
        torch.ops.xpurt_lazy_test.writes(copy)
    assert source.tolist() == [1.0] * 10
    assert copy.tolist() == [7.0] * 10
    library._destroy()
