"""Transforms and stencils over blocks of a large array; float32."""

import math

from xpurt_tools.workloads.workload import Task, Workload


def fft(blocks: int = 64, block_size: int = 1 << 20) -> Workload:
    """A complex transform of `blocks` x `block_size` points: one inside each block, then
    a butterfly of pairs of blocks per level (Cooley and Tukey, 1965).

    blocks: a power of two.
    """
    levels = blocks.bit_length() - 1
    if blocks != 1 << levels:
        raise ValueError(f"{blocks} blocks: their number is a power of two")
    work = Workload("fft")
    block_bytes = 8.0 * block_size
    inside = 5.0 * block_size * math.log2(block_size)
    for block in range(blocks):
        task = Task(f"inside{block}", inside, 2 * block_bytes, block_bytes)
        work.add(task, writes=[(0, block)])
    for level in range(levels):
        for block in range(blocks):
            other = block ^ 1 << level
            task = Task(
                f"level{level},{block}", 5.0 * block_size, 3 * block_bytes, block_bytes
            )
            work.add(task, [(level, block), (level, other)], [(level + 1, block)])
    return work


def stencil(side: int = 12, steps: int = 8, block_side: int = 1024) -> Workload:
    """Sweeps over `side` x `side` blocks of `block_side`^2 numbers. A block needs the
    rims of its neighbours from the previous sweep."""
    work = Workload("stencil")
    count = block_side**2
    for step in range(steps):
        for i in range(side):
            for j in range(side):
                task = Task(f"{i},{j}:{step}", 50.0 * count, 8.0 * count, 4.0 * count)
                number = work.add(task, [(step, i, j)], [(step + 1, i, j)])
                if step == 0:
                    continue
                before = number - side * side
                for di, dj in ((-1, 0), (0, -1), (0, 1), (1, 0)):
                    if 0 <= i + di < side and 0 <= j + dj < side:
                        rim = (before + di * side + dj, number, 4.0 * block_side)
                        work.edges.append(rim)
    return work
