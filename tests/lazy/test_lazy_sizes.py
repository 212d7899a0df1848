"""Graphs that differ in sizes alone share one compiled form: Note [Sizes of lazy graphs]."""

import pytest
import torch
from own_process import compiling_output as output

from xpurt.lazy.size_families import NoPattern, Sized, pattern_of, sized

SLOW = 240  # seconds: a compilation takes some, more on a busy machine

START = """
import logging, torch
logging.disable(logging.WARNING)  # of PyTorch's compiler
import xpurt.lazy
from torch import nn
"""

TRAINING = (
    START
    + """
xpurt.lazy.init(compile="always", sizes="symbolic")

def losses(device):
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(20, 8), nn.ReLU(), nn.Linear(8, 5)).to(device)
    steps = torch.optim.SGD(net.parameters(), 0.1)
    found, compiled = [], []
    for batch in (16, 24, 40, 17, 99):
        x, y = torch.randn(batch, 20).to(device), torch.randint(5, (batch,)).to(device)
        steps.zero_grad()
        loss = nn.functional.cross_entropy(net(x).reshape(batch, 5), y)
        loss.backward()
        steps.step()
        found.append(loss.detach().cpu())
        if device == "lazy":
            xpurt.lazy.step()
            compiled.append(len(xpurt.lazy.compilations()))
    return torch.stack(found), compiled

lazy, compiled = losses("lazy")
torch.testing.assert_close(lazy, losses("cpu")[0], rtol=1e-4, atol=1e-5)
after_two = compiled[1]
assert compiled == [compiled[0], *[after_two] * 4] and after_two > compiled[0], compiled
rows = xpurt.lazy.compilations()
print({each.sizes for each in rows[: compiled[0]]}, {each.sizes for each in rows[compiled[0] :]})
"""
)


@pytest.mark.slow
def test_the_third_batch_size_compiles_nothing() -> None:
    found = output(TRAINING, timeout=SLOW)
    assert found == "{'exact: the first of its kind'} {'symbolic'}"


EXACT = (
    START
    + """
xpurt.lazy.init(compile="always", sizes="symbolic")
for size in (16, 24, 1):
    x = torch.arange(float(size))
    found = x.to("lazy")[: max(size // 3, 1)] * 2
    assert found.cpu().tolist() == [2.0 * each for each in range(max(size // 3, 1))]
print([each.sizes for each in xpurt.lazy.compilations()])
"""
)


@pytest.mark.rest
def test_a_constant_that_follows_from_no_size_keeps_a_graph_exact() -> None:
    found = output(EXACT, timeout=SLOW)
    assert "is 8, 5, which follows from no size of a parameter" in found
    assert "is 1, which is compiled by itself" in found
    assert "symbolic" not in found


PATTERN = (
    START
    + """
xpurt.lazy.init(compile="always", sizes="symbolic")
for size, taken in ((16, 12), (24, 20), (20, 16), (20, 7), (30, 4)):
    found = torch.arange(float(size)).to("lazy")[:taken] * 2
    assert found.cpu().tolist() == [2.0 * each for each in range(taken)]
print([each.sizes for each in xpurt.lazy.compilations()])
"""
)


@pytest.mark.rest
def test_code_for_other_sizes_is_not_for_other_constants() -> None:
    found = output(PATTERN, timeout=SLOW)
    assert found.count("symbolic") == 1
    assert found.count("exact") == 3


EQUAL = (
    START
    + """
xpurt.lazy.init(compile="always", sizes="symbolic")
for first, second in ((3, 5), (6, 6), (7, 9), (12, 8)):
    given = torch.arange(float(first)), torch.arange(float(second))
    result = torch.cat([each.to("lazy") for each in given]) * 2
    assert result.cpu().equal(torch.cat(given) * 2), (first, second)
exact, first, second = xpurt.lazy.compilations()
number = "int64[]"  # the factor
assert exact.shapes == (number, "float32[5]", "float32[3]") and not exact.bounds, exact.shapes
(symbol,) = first.bounds
assert first.shapes == (number, *(f"float32[{symbol}]",) * 2), first.shapes
assert first.bounds[symbol] == (2, None), first.bounds
assert len(second.bounds) == 2, second.bounds
assert second.shapes[0] == number and set(second.shapes[1:]) == {f"float32[{s}]" for s in second.bounds}
again = [torch.arange(float(size)).to("lazy") for size in (7, 9)]
text = xpurt.lazy.text(torch.cat(again) * 2)
assert " is 2 or more, to:" in text, text
print([each.sizes for each in xpurt.lazy.compilations()])
"""
)


@pytest.mark.rest
def test_code_for_two_equal_sizes_is_not_for_two_others() -> None:
    """A symbol stands for both: the compiler's guards say so."""
    found = output(EQUAL, timeout=SLOW)
    assert found == "['exact: the first of its kind', 'symbolic', 'symbolic']"


def test_other_sizes_are_refused() -> None:
    code = 'import xpurt.lazy; xpurt.lazy.init(sizes="padded")'
    with pytest.raises(AssertionError, match='sizes is one of "exact" and "symbolic"'):
        output(code)


def graph(batch: int, view: list[int], other: int = 7, dim: int = 1) -> Sized:
    """Of a parameter of `batch` rows, and one of `other` rows."""
    found = sized(
        torch._C.parse_ir(
            f"""
graph(%p0 : Float({batch}, 6, strides=[6, 1], device=cpu),
      %p1 : Float({other}, 3, strides=[3, 1], device=cpu)):
  %2 : int[] = prim::Constant[value={view}]()
  %3 : Tensor = aten::view(%p0, %2)
  %4 : int = prim::Constant[value={dim}]()
  %5 : Tensor = aten::_log_softmax_backward_data(%3, %p1, %4, %4)
  return (%5)
"""
        )
    )
    assert found is not None
    return found


def test_a_pattern_fits_other_sizes_with_the_constants_of_its_formulas() -> None:
    pattern = pattern_of(graph(8, [24, 2]), [graph(4, [12, 2])])
    assert pattern.fits(graph(10, [30, 2]))
    assert not pattern.fits(graph(10, [29, 2]))  # a constant that is no size
    assert not pattern.fits(graph(10, [30, 2], dim=0))
    assert not pattern.fits(graph(10, [30, 2], other=9))  # which has not differed yet


def test_two_sizes_that_differ_are_two_symbols() -> None:
    pattern = pattern_of(graph(8, [8 * 5, 6], other=5), [graph(4, [4 * 9, 6], other=9)])
    assert pattern.fits(graph(3, [33, 6], other=11))
    assert not pattern.fits(graph(3, [30, 6], other=11))


def test_a_constant_without_a_formula_is_no_pattern() -> None:
    with pytest.raises(NoPattern, match="constant %2 is 11, 12, which follows from no"):
        pattern_of(graph(8, [11, 2]), [graph(5, [12, 2])])
    with pytest.raises(NoPattern, match="dimension 0 of parameter 0 is 1"):
        pattern_of(graph(1, [6, 1]), [graph(5, [30, 1])])


def test_another_op_is_another_skeleton() -> None:
    assert graph(8, [24, 2]).skeleton == graph(4, [12, 2]).skeleton
    assert graph(8, [24, 2]).skeleton != graph(8, [24, 2, 1]).skeleton
