"""Random graphs in layers."""

import random

from xpurt_tools.workloads.workload import Task, Workload

SIZES = tuple(float(1 << shift) for shift in range(16, 25))  # bytes: 64 KiB to 16 MiB


def layered(
    layers: int = 40, width: int = 24, parents: int = 3, seed: int = 0
) -> Workload:
    """Layers of 1 to 2 x `width` tasks; each task reads results of 1 to `parents` tasks
    of the previous layer. Sizes and operations per byte are drawn, too."""
    draw = random.Random(seed)
    work = Workload("layered")
    before: list[tuple[int, int]] = []
    for layer in range(layers):
        now = [(layer, place) for place in range(draw.randint(1, 2 * width))]
        for piece in now:
            size = draw.choice(SIZES)
            flops = size * 2 ** draw.uniform(0, 10)
            task = Task(f"{piece[0]},{piece[1]}", flops, 3 * size, size)
            many = min(len(before), draw.randint(1, parents))
            work.add(task, draw.sample(before, many), [piece])
        before = now
    return work
