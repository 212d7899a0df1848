"""Graphs that run within an explained call."""

from xpurt.mapping import ExplainedGraph, FormTimes, explain_graph, is_explaining
from xpurt.mapping.auto.explained_graphs import explained_graphs

GRAPH = ExplainedGraph("kernels", FormTimes(20, None), FormTimes(10, 12))


def test_an_explanation_within_another_ends_alone() -> None:
    with explained_graphs() as outer:
        with explained_graphs() as inner:
            pass
        explain_graph(GRAPH)
        assert is_explaining()
    assert (outer, inner) == ([GRAPH], [])
    assert not is_explaining()
