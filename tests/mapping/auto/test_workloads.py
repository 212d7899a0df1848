"""The standard work: how much of it there is, and who waits for whom."""

import pytest

from xpurt.mapping import fleets, simulate, workloads

SIZE = 64


def flops(work: workloads.Workload) -> float:
    return sum(task.flops for task in work.tasks)


@pytest.mark.parametrize(
    ("name", "tasks", "cubes"),
    [
        # Sums over the loops; in units of n^3 for n = tiles x size, as tiles grow:
        # 1/3, 2/3 and, as tiles are folded one by one, 4/3 of that.
        ("cholesky", lambda t: t * (t + 1) * (t + 2) // 6, 1 / 3),
        ("lu", lambda t: t * (t + 1) * (2 * t + 1) // 6, 2 / 3),
        ("qr", lambda t: t * (t + 1) * (2 * t + 1) // 6, 4 / 3),
    ],
)
def test_factorizations_do_what_they_should(
    name: str, tasks: object, cubes: float
) -> None:
    tiles = 24
    work = getattr(workloads, name)(tiles, SIZE)
    assert len(work.tasks) == tasks(tiles)  # type: ignore[operator]
    assert flops(work) / (tiles * SIZE) ** 3 == pytest.approx(cubes, rel=0.1)


def test_cholesky_of_three_tiles_waits_as_it_must() -> None:
    work = workloads.cholesky(3, SIZE)
    names = [task.name for task in work.tasks]
    assert names == [
        *("potrf0,0", "trsm1,0", "trsm2,0", "syrk1,1", "syrk2,2", "gemm2,1"),
        *("potrf1,1", "trsm2,1", "syrk2,2", "potrf2,2"),
    ]
    waits = {(names[a], names[b]) for a, b, _ in work.edges}
    assert ("potrf0,0", "trsm2,0") in waits
    assert ("trsm1,0", "gemm2,1") in waits
    assert ("gemm2,1", "trsm2,1") in waits
    assert ("potrf0,0", "gemm2,1") not in waits


def test_a_transform_has_a_butterfly_per_level() -> None:
    work = workloads.fft(8, 1024)
    assert len(work.tasks) == 8 * 4
    sources = [a for a, b, _ in work.edges if b == 8 * 3 + 1]
    assert sources == [8 * 2 + 1, 8 * 2 + 5]
    with pytest.raises(ValueError, match="power of two"):
        workloads.fft(6)


def test_a_stencil_takes_its_block_and_four_rims() -> None:
    work = workloads.stencil(3, 2, 16)
    middle = 9 + 4
    taken = {a: size for a, b, size in work.edges if b == middle}
    assert taken == {4: 4 * 16**2, 1: 64, 3: 64, 5: 64, 7: 64}


def test_random_layers_are_the_seeds() -> None:
    one, same, other = (workloads.layered(5, 4, seed=seed) for seed in (1, 1, 2))
    assert one.tasks == same.tasks
    assert one.edges == same.edges
    assert one.tasks != other.tasks


def test_a_resnet_step_is_three_forward_passes_of_work() -> None:
    work = workloads.resnet_step(batch=2)
    # 1.82 G multiplications and additions per image forward, twice that back but for
    # the first layer's input.
    assert flops(work) / 2 == pytest.approx(3 * 2 * 1.82e9, rel=0.05)
    updates = [task for task in work.tasks if task.name.startswith("sub")]
    assert len(updates) >= 62  # one per parameter
    assert all(a < b for a, b, _ in work.edges)


def test_a_transformer_step_counts_its_products() -> None:
    layers, width, batch, length = 2, 128, 2, 64
    work = workloads.transformer_step(layers, width, batch, length)
    products = sum(
        task.flops
        for task in work.tasks
        if task.name.startswith(("mm", "addmm", "bmm", "baddbmm"))
    )
    tokens = batch * length
    weights = layers * 12 * width**2 + width * 16_384
    attention = layers * 2 * length * width
    assert products == pytest.approx(3 * 2 * tokens * (weights + attention), rel=0.01)


@pytest.mark.parametrize("make", [workloads.stencil, workloads.layered])
def test_work_runs_on_devices(make: object) -> None:
    done = simulate(make(), fleets.mixed(4))  # type: ignore[operator]
    alone = done.schedule.graph.costs.sum(axis=0).min()
    assert done.bound <= done.makespan < alone
