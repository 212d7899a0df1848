"""Factorizations of a matrix that is cut into square tiles; float32.

Operations per tile: Buttari, Langou, Kurzak and Dongarra (2009); those of QR as counted
by Bouwmeester, Jacquelin, Langou and Robert (2011).
"""

from collections.abc import Sequence

from xpurt_tools.workloads.workload import Task, Workload

Tile = tuple[int, int]


class _Tiles:
    """Appends kernels on tiles of `size` x `size` numbers."""

    def __init__(self, name: str, size: int) -> None:
        self.work = Workload(name)
        self.size = size

    def panel(self, name: str, cubes: float, tiles: Sequence[Tile]) -> None:
        """A kernel in steps: each column depends on the previous one."""
        self._add(name, cubes, tiles, tiles, self.size)

    def update(
        self, name: str, cubes: float, reads: Sequence[Tile], writes: Sequence[Tile]
    ) -> None:
        self._add(name, cubes, [*reads, *writes], writes, 0)

    def _add(
        self,
        name: str,
        cubes: float,
        reads: Sequence[Tile],
        writes: Sequence[Tile],
        steps: int,
    ) -> None:
        """`cubes`: operations, in units of `size` cubed."""
        tile_bytes = 4.0 * self.size**2
        task = Task(
            f"{name}{writes[-1][0]},{writes[-1][1]}",
            cubes * self.size**3,
            tile_bytes * (len(reads) + len(writes)),
            tile_bytes,
            steps,
        )
        self.work.add(task, reads, writes)


def cholesky(tiles: int = 16, size: int = 1024) -> Workload:
    """Right-looking Cholesky factorization of `tiles` x `tiles` tiles."""
    on = _Tiles("cholesky", size)
    for k in range(tiles):
        on.panel("potrf", 1 / 3, [(k, k)])
        for i in range(k + 1, tiles):
            on.update("trsm", 1, [(k, k)], [(i, k)])
        for i in range(k + 1, tiles):
            on.update("syrk", 1, [(i, k)], [(i, i)])
            for j in range(k + 1, i):
                on.update("gemm", 2, [(i, k), (j, k)], [(i, j)])
    return on.work


def lu(tiles: int = 12, size: int = 1024) -> Workload:
    """Right-looking LU factorization, without pivoting."""
    on = _Tiles("lu", size)
    for k in range(tiles):
        on.panel("getrf", 2 / 3, [(k, k)])
        for i in range(k + 1, tiles):
            on.update("trsm", 1, [(k, k)], [(k, i)])
            on.update("trsm", 1, [(k, k)], [(i, k)])
        for i in range(k + 1, tiles):
            for j in range(k + 1, tiles):
                on.update("gemm", 2, [(i, k), (k, j)], [(i, j)])
    return on.work


def qr(tiles: int = 12, size: int = 1024) -> Workload:
    """QR factorization with a flat tree: the tiles of each column are folded into its
    first one, one after the other."""
    on = _Tiles("qr", size)
    for k in range(tiles):
        on.panel("geqrt", 4 / 3, [(k, k)])
        for j in range(k + 1, tiles):
            on.update("unmqr", 2, [(k, k)], [(k, j)])
        for i in range(k + 1, tiles):
            on.panel("tsqrt", 2, [(k, k), (i, k)])
            for j in range(k + 1, tiles):
                on.update("tsmqr", 4, [(i, k)], [(k, j), (i, j)])
    return on.work
