"""The standard workloads: their amount of work, and their dependencies."""

import pytest
import torch

from xpurt.mapping import fleets, on_devices, simulate, workloads

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


def test_a_traced_call_has_its_ops_and_their_bytes() -> None:
    def call(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        product = x @ y
        return (product.T + 1).sum(0) + product.view(-1)[:4]

    work = workloads.traced("call", call, torch.empty(4, 6), torch.empty(6, 5))
    assert [task.name for task in work.tasks] == ["mm", "add", "sum_1", "add_1"]
    assert work.tasks[0].flops == 2 * 4 * 5 * 6
    assert work.tasks[0].bytes == 4 * (4 * 6 + 6 * 5 + 4 * 5)
    assert work.tasks[0].result_bytes == 4 * 4 * 5
    # The views are read through.
    assert work.edges == [(0, 1, 80), (1, 2, 80), (2, 3, 16), (0, 3, 16)]


def test_work_on_devices_is_a_graph() -> None:
    devices = fleets.mixed(2)
    work = workloads.cholesky(2, SIZE)
    graph = on_devices(work, devices)
    card, cpu = devices
    update = work.tasks[2]  # syrk
    for column, device in enumerate((card, cpu)):
        at_work = max(
            update.flops / device.flops_per_us, update.bytes / device.bytes_per_us
        )
        assert graph.costs[2, column] == pytest.approx(device.launch_us + at_work)
    moved = 4 * SIZE**2 / min(card.link_bytes_per_us, cpu.link_bytes_per_us)
    assert graph.transfer(0)[0, 1] == pytest.approx(card.link_us + cpu.link_us + moved)


def test_copies_are_independent_of_each_other() -> None:
    one = workloads.cholesky(3, 64)
    work = workloads.repeated(one, 4)
    assert len(work.tasks) == 4 * len(one.tasks)
    assert len(work.edges) == 4 * len(one.edges)
    assert all(producer % 4 == consumer % 4 for producer, consumer, _ in work.edges)
    done = simulate(work, fleets.alike(4), "openvino-cumulative")
    assert done.makespan == simulate(one, 1 * fleets.alike(1), "heft").makespan
