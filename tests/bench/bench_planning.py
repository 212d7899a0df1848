"""What planning takes: a graph of 10,000 tasks on 8 devices by each policy, and one
decision of the online policy. Run it from the root: python tests/bench/bench_planning.py
"""

import random
import time

from xpurt import _C
from xpurt.mapping import TaskGraph, plan

TASKS, DEVICES = 10_000, 8


def random_graph(transfer: float, seed: int = 0) -> TaskGraph:
    """Each task takes up to three of the 200 results before it. `transfer`: in units of
    the mean cost."""
    draw = random.Random(seed)
    speeds = [draw.uniform(0.5, 2) for _ in range(DEVICES)]
    costs = [[draw.uniform(5, 15) * speed for speed in speeds] for _ in range(TASKS)]
    edges = [
        (producer, task, draw.uniform(0, 20) * transfer)
        for task in range(1, TASKS)
        for producer in {
            draw.randrange(max(0, task - 200), task) for _ in range(draw.randint(1, 3))
        }
    ]
    return TaskGraph(costs, edges)


def main() -> None:
    print(f"{TASKS:,} tasks on {DEVICES} devices, seconds")
    print(
        f"{'transfer/cost':>14} {'graph':>7} {'heft':>7} {'cpop':>7} {'peft':>7} {'eft':>7}"
    )
    for transfer in (0.1, 1.0, 10.0):
        begin = time.perf_counter()
        graph = random_graph(transfer)
        spent = [time.perf_counter() - begin]
        for policy in ("heft", "cpop", "peft", "eft"):
            begin = time.perf_counter()
            plan(graph, policy)
            spent.append(time.perf_counter() - begin)
        print(f"{transfer:>14} " + " ".join(f"{each:>7.2f}" for each in spent))
    print("one decision, ns")
    for devices in (2, 4, 8, 64):
        best = min(_C.OnlinePolicy(devices).choice_ns(100_000) for _ in range(5))
        print(f"{devices:>14} {best:>7.0f}")


if __name__ == "__main__":
    main()
