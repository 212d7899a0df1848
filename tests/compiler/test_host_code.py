"""The function of CPU tensors that compiled code is, called with xpu tensors."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from own_process import compiling_run as run

import xpurt
from xpurt import _C

pytestmark = pytest.mark.mappings("CPU")


@pytest.fixture(autouse=True)
def host_reads(xpu: torch.device) -> None:
    if not _C.host_reads(xpu.index):
        pytest.skip("the host cannot read the memory")


def code(
    function: Callable[[list[Any]], Any],
    outputs: int,
    written: tuple[int, ...] = (),
    returned: tuple[int, ...] = (),
) -> Callable[[list[Any]], list[Any]]:
    made: Callable[[list[Any]], list[Any]] = _C.HostCode(
        function, 0, list(written), [True] * outputs, list(returned)
    )
    return made


def test_an_input_ends_with_its_last_use(xpu: torch.device) -> None:
    """As the activations of a backward pass do."""
    seen = []

    def function(inputs: list[Any]) -> list[Any]:
        (x,) = inputs
        inputs.clear()
        before = torch.xpu.memory_allocated()
        del x
        seen.append(before - torch.xpu.memory_allocated())
        return []

    code(function, 0)([torch.ones(1 << 20, device=xpu)])
    assert seen == [4 << 20]


def test_an_input_that_is_returned_is_the_same_tensor(xpu: torch.device) -> None:
    x = torch.ones(4, device=xpu)
    same, double, copied = code(
        lambda inputs: [inputs[0], inputs[0] * 2, inputs[0].clone()],
        3,
        returned=(0, -1, 0),
    )([x])
    assert same is x
    assert double.tolist() == [2.0] * 4
    assert copied is not x
    assert copied.device == double.device == x.device


def test_a_view_of_an_input_is_on_its_storage(xpu: torch.device) -> None:
    x = torch.zeros(2, 3, device=xpu)
    (row,) = code(lambda inputs: [inputs[0][1]], 1)([x])
    row.fill_(7)
    assert x.tolist() == [[0.0] * 3, [7.0] * 3]


def test_a_constant_is_not_given_away(xpu: torch.device) -> None:
    constant = torch.ones(3)
    function = code(lambda inputs: [constant], 1)
    (first,) = function([])
    first.zero_()
    (second,) = function([])
    assert second.tolist() == [1.0] * 3
    assert constant.device == torch.device("cpu")


def test_numbers_and_other_values_pass(xpu: torch.device) -> None:
    x = torch.ones(2, device=xpu)
    found = code(lambda inputs: (inputs[1] + 1, None, inputs[0] * inputs[1]), 3)([x, 3])
    assert found[:2] == [4, None]
    assert found[2].tolist() == [3.0, 3.0]


def test_an_error_passes(xpu: torch.device) -> None:
    def function(inputs: list[Any]) -> list[Any]:
        raise KeyError("unknown")

    with pytest.raises(KeyError, match="unknown"):
        code(function, 0)([torch.ones(2, device=xpu)])


def test_a_mapping_that_has_changed(xpu: torch.device) -> None:
    ended = run(
        """
        import torch, xpurt
        from xpurt import _C
        torch.ones(1, device="xpu")
        function = _C.HostCode(lambda inputs: [], 0, [], [], [])
        xpurt.set_xpu_mapping("GPU")
        try:
            function([torch.ones(2, device="xpu")])
        except RuntimeError as error:
            print("torch.compiler.reset()" in str(error))
        """
    )
    assert ended.stdout.split() == ["True"], ended.stderr


def test_a_call_is_explained(xpu: torch.device) -> None:
    call = code(lambda inputs: [inputs[0] + 1], 1)
    (row,) = xpurt.explain(call, [torch.ones(2, device=xpu)])
    assert (row.op, row.tier) == ("compiled graph", "native")
    assert row.measured_us > 0
