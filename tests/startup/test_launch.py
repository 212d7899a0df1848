"""Which processors a rank of torchrun gets, on machines that are made up."""

from pathlib import Path

import pytest

from xpurt.startup import launch
from xpurt.startup.launch import LocalRank, local_rank, processors_of, usable_nodes


def rank_of(number: str, count: str) -> LocalRank | None:
    return local_rank({"LOCAL_RANK": number, "LOCAL_WORLD_SIZE": count})


def test_the_rank_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    assert rank_of("1", "2") == LocalRank(1, 2)
    assert rank_of("0", "1") is None
    assert rank_of("2", "2") is None
    assert rank_of("x", "2") is None
    assert local_rank({}) is None
    monkeypatch.setenv("XPURT_MAPPING", "CPU")
    assert rank_of("1", "2") == LocalRank(1, 2)


@pytest.mark.parametrize(
    ("variable", "in_program", "takes"),
    [
        ("", None, True),
        ("CPU", None, True),
        ("Explicit", None, False),
        ("", False, False),
        ("explicit", True, True),
    ],
)
def test_a_mapping_that_decides_alone_leaves_the_processors(
    variable: str,
    in_program: bool | None,
    takes: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bound: list[list[int]] = []
    monkeypatch.setenv("XPURT_MAPPING", variable)
    monkeypatch.setenv("LOCAL_RANK", "1")
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "2")
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {0, 1})
    monkeypatch.setattr("os.sched_setaffinity", lambda _, mine: bound.append(mine))
    monkeypatch.setattr("torch.set_num_threads", lambda _: None)
    monkeypatch.setattr(launch, "usable_nodes", lambda: [[0, 1]])
    monkeypatch.setattr(launch, "_takes_part", in_program)
    launch.take_processors()
    assert bound == ([[1]] if takes else [])


@pytest.mark.parametrize(
    ("nodes", "count", "parts"),
    [
        ([[0, 1, 2, 3]], 2, [[0, 1], [2, 3]]),
        ([[0, 1, 2]], 2, [[0], [1, 2]]),
        ([[0, 2], [1, 3]], 2, [[0, 2], [1, 3]]),
        ([[0, 2], [1, 3]], 4, [[0], [2], [1], [3]]),
        ([[0], [1], [2], [3]], 2, [[0, 1], [2, 3]]),
        ([[5, 6]], 3, [[5], [6], [5]]),
    ],
)
def test_parts(nodes: list[list[int]], count: int, parts: list[list[int]]) -> None:
    found = [processors_of(LocalRank(number, count), nodes) for number in range(count)]
    assert found == parts


def test_nodes_of_the_system(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {0, 1, 5, 8})
    assert usable_nodes(tmp_path) == [[0, 1, 5, 8]]
    for name, text in (("node0", "0-3,8\n"), ("node1", "4-7\n"), ("node2", "\n")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "cpulist").write_text(text)
    assert usable_nodes(tmp_path) == [[0, 1, 8], [5]]
