"""Which form a compiled graph runs in where results have to repeat bit for bit."""

from typing import Any, cast

import pytest
import torch
from torch import Tensor

from xpurt import _C
from xpurt.lazy.compiled_graph import Form, Program


class Graph:
    """Counts the runs in each form."""

    def __init__(self) -> None:
        self.forms: list[str] = []

    def run_op_by_op(self, arguments: list[Tensor]) -> list[Tensor]:
        self.forms.append("op by op")
        return []

    def run_compiled(self, code: Any, arguments: list[Tensor]) -> list[Tensor]:
        self.forms.append("compiled")
        return []


@pytest.mark.parametrize(("always", "form"), [(False, "op by op"), (True, "compiled")])
def test_one_form_runs(form: str, *, always: bool) -> None:
    graph = Graph()
    program = Program(
        cast(_C.LazyGraph, graph), Form(lambda *_: [], {}), 0, always=always
    )
    torch.use_deterministic_algorithms(True)
    try:
        for _ in range(30):
            program([])
    finally:
        torch.use_deterministic_algorithms(False)
    assert set(graph.forms) == {form}
