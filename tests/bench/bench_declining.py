"""How far behind the best device alone policies are in the worst of many random graphs:
chains and wide ones, alike, related and unrelated devices, transfers of up to 30 times
the costs, and programs whose phases suit different devices. Run it from the root:
python tests/bench/bench_declining.py
"""

import math
import random

from xpurt.mapping import TaskGraph, plan, simulate

GRAPHS = 4_000
PLANNED = ("eft", "heft")
SIMULATED = ("eft", "in-order", "lookahead")


def random_graph(draw: random.Random) -> TaskGraph:
    tasks, devices = draw.randrange(2, 80), draw.randrange(2, 6)
    span = draw.choice((1, 2, 4, 8, 40))
    transfer = draw.choice((0, 0.1, 1, 5, 30))
    spread = draw.choice((1.001, 3, 20))
    speeds = [draw.uniform(1, spread) for _ in range(devices)]
    phases = draw.choice((1, 1, 2, 4, tasks))
    suits = [
        [draw.uniform(0.2, 5) if phases > 1 else 1.0 for _ in range(devices)]
        for _ in range(phases)
    ]
    costs = []
    for task in range(tasks):
        size, suit = draw.uniform(1, 10), suits[task * phases // tasks]
        costs.append([size * a * b for a, b in zip(speeds, suit, strict=True)])
    edges = [
        (producer, task, draw.uniform(0, 20) * transfer)
        for task in range(1, tasks)
        for producer in {
            draw.randrange(max(0, task - span), task) for _ in range(draw.randrange(4))
        }
    ]
    return TaskGraph(costs, edges)


def main() -> None:
    draw = random.Random(0)
    found: dict[str, list[float]] = {}
    for _ in range(GRAPHS):
        graph = random_graph(draw)
        alone = float(graph.costs.sum(axis=0).min())
        for policy in PLANNED:
            ratio = plan(graph, policy).makespan / alone
            found.setdefault(f"plan {policy}", []).append(ratio)
        for policy in SIMULATED:
            ratio = simulate(graph, graph.devices, policy).makespan / alone
            found.setdefault(f"simulate {policy}", []).append(ratio)
    print(f"{GRAPHS:,} graphs, makespan / best device alone")
    print(f"{'':>20} {'geomean':>8} {'worst':>8} {'above 1.02':>11} {'above 1.05':>11}")
    for name, ratios in found.items():
        mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
        above = [sum(r > limit for r in ratios) / len(ratios) for limit in (1.02, 1.05)]
        print(
            f"{name:>20} {mean:>8.3f} {max(ratios):>8.3f} "
            + " ".join(f"{share:>11.2%}" for share in above)
        )


if __name__ == "__main__":
    main()
