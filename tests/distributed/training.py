"""The cases of a rank: training in parallel, against the same training in one process.

Two steps with momentum on half of the batch must give the parameters that the whole
batch gives on CPU tensors.
"""

import functools
import shutil
import tempfile
import warnings
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed as dist
import torch.nn.functional as F
from ranks import BACKEND, RANKS, XPU, host_copies, main
from torch import Tensor, nn
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.nn.parallel import DistributedDataParallel

warnings.simplefilter("ignore")

EXACT = 1e-5
HALF = 2e-2  # bfloat16 has 8 bits


def _seeded(seed: int, *shape: int) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


X, Y = _seeded(1, 8, 8), _seeded(2, 8, 4)


def _part(whole: Tensor) -> Tensor:
    return whole.chunk(RANKS)[dist.get_rank()].to(XPU)


def _model() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 4)
    )


def _sgd(module: nn.Module) -> torch.optim.Optimizer:
    # One by one: a plan for some layers alone leaves DTensors beside plain tensors.
    return torch.optim.SGD(module.parameters(), lr=0.1, momentum=0.9, foreach=False)


def _train(
    module: Callable[[Tensor], Tensor],
    optimizer: torch.optim.Optimizer,
    x: Tensor,
    y: Tensor,
    steps: int = 2,
) -> None:
    for _ in range(steps):
        optimizer.zero_grad()
        F.mse_loss(module(x).float(), y).backward()
        optimizer.step()


@functools.cache
def _expected() -> list[Tensor]:
    model = _model()
    _train(model, _sgd(model), X, Y)
    return [each.detach() for each in model.parameters()]


def _whole(parameter: Tensor) -> Tensor:
    full: Any = getattr(parameter, "full_tensor", lambda: parameter)
    return full().detach().cpu()


def _check(parameters: Iterable[Tensor], tolerance: float = EXACT) -> None:
    for found, expected in zip(parameters, _expected(), strict=True):
        torch.testing.assert_close(_whole(found), expected, rtol=0, atol=tolerance)


def _train_and_check(module: Any, tolerance: float = EXACT) -> None:
    _train(module, _sgd(module), _part(X), _part(Y))
    _check(module.parameters(), tolerance)


def ddp() -> None:
    _train_and_check(DistributedDataParallel(_model().to(XPU)))


def ddp_with_options() -> None:
    for options in (
        {"static_graph": True},
        {"find_unused_parameters": True},
        {"gradient_as_bucket_view": True, "bucket_cap_mb": 0.0005},
        {"device_ids": [XPU.index]},
    ):
        _train_and_check(DistributedDataParallel(_model().to(XPU), **options))


def ddp_without_sync() -> None:
    parallel = DistributedDataParallel(_model().to(XPU))
    with parallel.no_sync():
        F.mse_loss(parallel(_part(X)), _part(Y)).backward()
    F.mse_loss(parallel(_part(X)), _part(Y)).backward()
    alone = _model()
    for _ in range(2):
        F.mse_loss(alone(X), Y).backward()
    for found, expected in zip(parallel.parameters(), alone.parameters(), strict=True):
        torch.testing.assert_close(found.grad.cpu(), expected.grad)


def ddp_hook_bf16() -> None:
    from torch.distributed.algorithms.ddp_comm_hooks import default_hooks

    parallel = DistributedDataParallel(_model().to(XPU))
    parallel.register_comm_hook(None, default_hooks.bf16_compress_hook)
    _train_and_check(parallel, HALF)


def ddp_hook_power_sgd() -> None:
    from torch.distributed.algorithms.ddp_comm_hooks import powerSGD_hook as hooks

    parallel = DistributedDataParallel(_model().to(XPU))
    state = hooks.PowerSGDState(
        None, matrix_approximation_rank=16, start_powerSGD_iter=2
    )
    parallel.register_comm_hook(state, hooks.powerSGD_hook)
    _train(parallel, _sgd(parallel), _part(X), _part(Y), steps=5)
    for each in parallel.parameters():
        others = [torch.empty_like(each) for _ in range(RANKS)]
        dist.all_gather(others, each.detach())
        assert torch.equal(*others)


@host_copies()
def ddp_of_sparse_gradients() -> None:
    parallel = DistributedDataParallel(nn.Embedding(5, 2, sparse=True).to(XPU))
    parallel(torch.tensor([1, dist.get_rank() + 2], device=XPU)).sum().backward()
    grad = parallel.module.weight.grad.to_dense().cpu()
    assert grad[:, 0].tolist() == [0.0, 1.0, 0.5, 0.5, 0.0]


def ddp_of_batch_norm() -> None:
    def made() -> nn.Sequential:
        torch.manual_seed(0)
        return nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU())

    x, scale = _seeded(3, 4, 3, 6, 6), _seeded(4, 4, 4, 4, 4)
    alone = made()
    (alone(x) * scale).mean().backward()
    synced = nn.SyncBatchNorm.convert_sync_batchnorm(made()).to(XPU)
    parallel = DistributedDataParallel(synced)
    (parallel(_part(x)) * _part(scale)).mean().backward()
    for found, expected in zip(parallel.parameters(), alone.parameters(), strict=True):
        torch.testing.assert_close(
            found.grad.cpu(), expected.grad, atol=1e-5, rtol=1e-4
        )
    for name, expected in alone.named_buffers():
        torch.testing.assert_close(synced.get_buffer(name).cpu(), expected)
    synced.half()
    assert synced(_part(x).half()).dtype == torch.float16


def fsdp1() -> None:
    from torch.distributed.fsdp import CPUOffload, FullyShardedDataParallel

    for offloaded in (False, True):
        sharded = FullyShardedDataParallel(
            _model(),
            device_id=XPU,
            use_orig_params=True,
            cpu_offload=CPUOffload(offloaded),
        )
        _train(sharded, _sgd(sharded), _part(X), _part(Y))
        with FullyShardedDataParallel.summon_full_params(sharded):
            _check(sharded.parameters())


def _fsdp2(**options: Any) -> nn.Sequential:
    from torch.distributed.fsdp import fully_shard

    model = _model().to(XPU)
    for layer in model[::2]:
        fully_shard(layer, **options)
    fully_shard(model, **options)
    return model


def _hybrid_mesh() -> DeviceMesh:
    names = ("replicated", "sharded")
    return init_device_mesh(XPU.type, (RANKS, 1), mesh_dim_names=names)


def fsdp2() -> None:
    _train_and_check(_fsdp2())


def fsdp2_on_a_mesh() -> None:
    _train_and_check(_fsdp2(mesh=init_device_mesh(XPU.type, (RANKS,))))
    _train_and_check(_fsdp2(mesh=_hybrid_mesh()))


def fsdp2_in_bf16() -> None:
    from torch.distributed.fsdp import MixedPrecisionPolicy

    policy = MixedPrecisionPolicy(torch.bfloat16, torch.float32)
    _train_and_check(_fsdp2(mp_policy=policy), HALF)


def fsdp2_offloaded() -> None:
    from torch.distributed.fsdp import CPUOffloadPolicy

    model = _fsdp2(offload_policy=CPUOffloadPolicy())
    _train_and_check(model)
    assert all(each.device.type == "cpu" for each in model.parameters())


def fsdp2_clips_gradients() -> None:
    model, alone = _fsdp2(), _model()
    F.mse_loss(model(_part(X)), _part(Y)).backward()
    F.mse_loss(alone(X), Y).backward()
    found = nn.utils.clip_grad_norm_(model.parameters(), 0.1)
    expected = nn.utils.clip_grad_norm_(alone.parameters(), 0.1)
    torch.testing.assert_close(_whole(found), expected)
    for each, other in zip(model.parameters(), alone.parameters(), strict=True):
        torch.testing.assert_close(_whole(each.grad), other.grad)


def tensor_parallel() -> None:
    from torch.distributed.tensor import parallel

    model = parallel.parallelize_module(
        _model().to(XPU),
        init_device_mesh(XPU.type, (RANKS,)),
        {"0": parallel.ColwiseParallel(), "2": parallel.RowwiseParallel()},
    )
    _train(model, _sgd(model), X.to(XPU), Y.to(XPU))
    _check(model.parameters())


def sequence_parallel() -> None:
    from torch.distributed.tensor import Shard, parallel

    def made() -> nn.Sequential:
        torch.manual_seed(0)
        return nn.Sequential(
            nn.LayerNorm(8), nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 8)
        )

    x, alone = _seeded(5, 2, 4, 8), made()
    model = parallel.parallelize_module(
        made().to(XPU),
        init_device_mesh(XPU.type, (RANKS,)),
        {
            "0": parallel.SequenceParallel(),
            "1": parallel.ColwiseParallel(input_layouts=Shard(1)),
            "3": parallel.RowwiseParallel(output_layouts=Shard(1)),
        },
    )
    rank = dist.get_rank()
    found = model(x.chunk(RANKS, 1)[rank].contiguous().to(XPU))
    expected = alone(x)
    torch.testing.assert_close(found.cpu(), expected.chunk(RANKS, 1)[rank])
    found.sum().backward()
    expected.sum().backward()
    for layer in (1, 3):
        torch.testing.assert_close(
            _whole(model[layer].weight.grad), alone[layer].weight.grad
        )


def tensors_on_a_mesh() -> None:
    from torch.distributed.tensor import Replicate, Shard, distribute_tensor

    mesh = init_device_mesh(XPU.type, (1, RANKS), mesh_dim_names=("data", "tensor"))
    host = _seeded(6, 4, 4)
    columns = distribute_tensor(host.to(XPU), mesh, [Replicate(), Shard(1)])
    torch.testing.assert_close(_whole(columns @ columns.t()), host @ host.t())
    rows = columns.redistribute(mesh, [Replicate(), Shard(0)])
    assert torch.equal(_whole(rows), host)


def _has_offsets() -> bool:
    """Of the generator of a prototype. PyTorch makes no further ones of some types."""
    try:
        torch.get_device_module(XPU).default_generators()[0].get_offset()
    except RuntimeError:
        return False
    return True


def random_tensors_on_a_mesh() -> None:
    """PyTorch divides the numbers by offsets into a sequence. A prototype on the host
    draws from the CPU's generator, which has none."""
    from torch.distributed.tensor import Shard, rand

    if BACKEND == "prototype" and not _has_offsets():
        return
    mesh = init_device_mesh(XPU.type, (RANKS,))
    drawn = rand(4, 4, device_mesh=mesh, placements=[Shard(0)])
    assert len(_whole(drawn).unique()) == 16


def groups_by_split() -> None:
    """Of the default group, which is bound to a device; for both kinds of tensors."""
    for parts in ([[0, 1]], [[0], [1]], [[0, 1]]):
        group = dist.split_group(split_ranks=parts)
        for device in ("cpu", XPU.type):
            given = torch.full((4,), dist.get_rank() + 1.0, device=device)
            dist.all_reduce(given, group=group)
            summed = 3.0 if len(parts) == 1 else dist.get_rank() + 1.0
            assert given.tolist() == [summed] * 4
    assert dist.new_group([0, 1]).size() == RANKS


def pipeline() -> None:
    from torch.distributed import pipelining

    rank = dist.get_rank()
    for schedule in (pipelining.ScheduleGPipe, pipelining.Schedule1F1B):
        layers = slice(0, 2) if rank == 0 else slice(2, 5)
        part = _model()[layers].to(XPU)
        stage = pipelining.PipelineStage(part, rank, RANKS, XPU)
        steps = schedule(stage, n_microbatches=4, loss_fn=F.mse_loss)
        steps.step(X.to(XPU)) if rank == 0 else steps.step(target=Y.to(XPU))
        alone = _model()
        F.mse_loss(alone(X), Y).backward()
        for found, expected in zip(
            part.parameters(), alone[layers].parameters(), strict=True
        ):
            torch.testing.assert_close(found.grad.cpu(), expected.grad)


def checkpoint() -> None:
    """Saved in the background by FSDP2, and loaded as one, and into other shards."""
    from torch.distributed import checkpoint as files
    from torch.distributed.checkpoint import state_dict as states

    shared: list[Any] = [tempfile.mkdtemp() if dist.get_rank() == 0 else None]
    dist.broadcast_object_list(shared)
    folder = Path(shared[0], "saved")
    model = _fsdp2()
    _train(model, _sgd(model), _part(X), _part(Y))
    files.async_save(states.get_model_state_dict(model), checkpoint_id=folder).result()
    plain = _model()
    loaded = plain.state_dict()
    for each in loaded.values():
        each.zero_()
    files.load(loaded, checkpoint_id=folder)
    _check(loaded.values())
    other = _fsdp2(mesh=_hybrid_mesh())
    parts = states.get_model_state_dict(other)
    files.load(parts, checkpoint_id=folder)
    states.set_model_state_dict(other, parts)
    _check(other.parameters())
    dist.barrier()
    if dist.get_rank() == 0:
        shutil.rmtree(shared[0])


def zero_redundancy() -> None:
    from torch.distributed.optim import ZeroRedundancyOptimizer

    parallel = DistributedDataParallel(_model().to(XPU))
    optimizer = ZeroRedundancyOptimizer(
        parallel.parameters(), torch.optim.SGD, lr=0.1, momentum=0.9
    )
    _train(parallel, optimizer, _part(X), _part(Y))
    _check(parallel.parameters())


def zero_in_a_hook() -> None:
    """Ranks would wait for each other; PyTorch refuses it for gloo."""
    from torch.distributed.algorithms.ddp_comm_hooks import ddp_zero_hook, default_hooks
    from torch.distributed.optim import ZeroRedundancyOptimizer

    parallel = DistributedDataParallel(_model().to(XPU))
    optimizer = ZeroRedundancyOptimizer(
        parallel.parameters(), torch.optim.SGD, overlap_with_ddp=True, lr=0.1
    )
    for made in (
        ddp_zero_hook.hook_with_zero_step,
        ddp_zero_hook.hook_with_zero_step_interleaved,
    ):
        with pytest.raises(RuntimeError, match="may hang with the backend of"):
            made(default_hooks.allreduce_hook, parallel, optimizer)


if __name__ == "__main__":
    # Bound to a device, so that the groups of meshes are made by split_group(). PyTorch
    # binds groups to the accelerator alone.
    accelerator = torch.accelerator.current_accelerator()
    bound = {"device_id": XPU} if accelerator == torch.device(XPU.type) else {}
    main(globals(), backend=f"cpu:gloo,{XPU.type}:{BACKEND}", **bound)
