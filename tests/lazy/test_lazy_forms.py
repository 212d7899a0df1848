"""Which form a traced graph runs in: Note [When a graph is compiled] in
csrc/lazy/graph.h. The test gives the compiled form."""

import pytest
from own_process import compiling_output as output

START = """
import torch, xpurt, xpurt.lazy
from xpurt import _C, _lazy
SIZE = 100
xpurt.lazy.init(compile="never")
compiled = []
result = torch.tensor(7.0, device="xpu")

def compile(graph, arguments):
    compiled.append(graph.name)
    return lambda given: [result.clone()], {}

x = torch.zeros(SIZE).to("lazy")
def runs(calls):
    xpurt.op_report(reset=True)
    found = {torch.cos(x).mean().item() for _ in range(calls)}
    tiers = {row.tier for row in xpurt.op_report() if row.op.startswith("lazy graph ")}
    return sorted(found), sorted(tiers), len(compiled)
"""

COMPILED, OP_BY_OP = ([7.0], ["compiled"]), ([1.0], ["op by op"])
BOTH = ([1.0, 7.0], ["compiled", "op by op"])


@pytest.mark.one_in(2)
@pytest.mark.parametrize(
    ("at_once", "setting", "found"),
    [
        (False, "torch.use_deterministic_algorithms(True)", (*OP_BY_OP, 0)),
        (True, "torch.use_deterministic_algorithms(True)", (*COMPILED, 1)),
        (True, "_C.set_learning(False)", (*COMPILED, 1)),
        (True, "", (*BOTH, 1)),
    ],
)
def test_no_time_chooses_where_results_have_to_repeat(
    at_once: bool, setting: str, found: object
) -> None:
    program = f"_lazy.set_lazy_compiler(compile, {at_once})\n{setting}\nprint(runs(60))"
    # Else 60 runs take less time than compiling is expected to take.
    size = 100 if at_once else 1 << 24
    start = START.replace("SIZE = 100", f"SIZE = {size}")
    assert output(start + program).strip() == str(found)


TAKES = """
def compile_for_two(graph, arguments):
    (number,) = (at for at, each in enumerate(arguments) if each.dim() == 0)
    return compile(graph, arguments)[0], {number: 2.0}
_lazy.set_lazy_compiler(compile_for_two, True)
def scaled(by):
    return (torch.cos(x) * by).mean().item()
print({scaled(1.0) for _ in range(60)}, len(compiled))
print([scaled(2.0) for _ in range(4)])  # the first round
"""


def test_arguments_that_the_program_does_not_take_are_no_turn_of_a_round() -> None:
    first, then = output(START + TAKES).strip().splitlines()
    assert first == "{1.0} 1"
    assert then == str([2.0, 2.0, 7.0, 7.0])


FAILS = """
def fail(graph, arguments):
    compiled.append(graph.name)
_lazy.set_lazy_compiler(fail, True)
print(runs(60))
_lazy.set_lazy_compiler(fail, False)
print(runs(60))
"""


def test_a_graph_that_cannot_be_compiled_is_tried_once() -> None:
    assert output(START + FAILS).strip().splitlines() == [str((*OP_BY_OP, 1))] * 2


LATER = """
_lazy.set_lazy_compiler(compile, False)
print(runs(3))
_lazy.set_lazy_compiler(compile, True)
print([torch.cos(x).mean().item() for _ in range(4)])  # the first round
"""


def test_a_graph_that_ran_before_is_compiled_at_once_later() -> None:
    first, then = output(START + LATER).strip().splitlines()
    assert first == str((*OP_BY_OP, 0))
    assert then == str([1.0, 1.0, 7.0, 7.0])
