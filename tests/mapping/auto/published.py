"""Graphs of the papers, with the tables as printed there. Tasks count from 0 here."""

from xpurt.mapping import TaskGraph

TEN_TASKS_COSTS = [
    [14, 16, 9],
    [13, 19, 18],
    [11, 13, 19],
    [13, 8, 17],
    [12, 13, 10],
    [13, 16, 9],
    [7, 15, 11],
    [5, 11, 14],
    [18, 12, 20],
    [21, 7, 16],
]
TEN_TASKS_EDGES = [
    (0, 1, 18),
    (0, 2, 12),
    (0, 3, 9),
    (0, 4, 11),
    (0, 5, 14),
    (1, 7, 19),
    (1, 8, 16),
    (2, 6, 23),
    (3, 7, 27),
    (3, 8, 23),
    (4, 8, 13),
    (5, 7, 15),
    (6, 9, 17),
    (7, 9, 11),
    (8, 9, 13),
]

PREDICT_COSTS = [
    [22, 21, 36],
    [22, 18, 18],
    [32, 27, 43],
    [7, 10, 4],
    [29, 27, 35],
    [26, 17, 24],
    [14, 25, 30],
    [29, 23, 36],
    [15, 21, 8],
    [13, 16, 33],
]
PREDICT_EDGES = [
    (0, 1, 17),
    (0, 2, 31),
    (0, 3, 29),
    (0, 4, 13),
    (0, 5, 7),
    (1, 7, 3),
    (1, 8, 30),
    (2, 6, 16),
    (3, 7, 11),
    (3, 8, 7),
    (4, 8, 57),
    (5, 7, 5),
    (6, 9, 9),
    (7, 9, 42),
    (8, 9, 7),
]


def ten_tasks() -> TaskGraph:
    """Figure 2 and table 1 of Topcuoglu, Hariri and Wu (2002)."""
    return TaskGraph(TEN_TASKS_COSTS, TEN_TASKS_EDGES)


def predict() -> TaskGraph:
    """Figure 1 of Arabnejad and Barbosa (2014)."""
    return TaskGraph(PREDICT_COSTS, PREDICT_EDGES)
