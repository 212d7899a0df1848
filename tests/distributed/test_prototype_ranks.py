"""torch.distributed on prototypes, with two ranks: the cases of xpu."""

import functools
from pathlib import Path

import collectives
import pytest
import training
from rank_processes import Found, run
from ranks import PROTOTYPE, RANKS, cases

FOLDER = Path(__file__).parent
SCRIPTS = {"collectives.py": collectives, "training.py": training}
# Each kind of memory, and each kind of type: with a key alone, with hooks, PrivateUse1.
KINDS = [
    ("ipu", "host"),
    ("mydevice", "gpu"),
    ("hpu", "host"),
    ("mtia", "cpu"),
    ("maia", "xpu"),
]
# What PyTorch refuses for device types, by its error: it lists the types.
ON_MODULE_MOVES = "`variable` and `tensor` have incompatible tensor type"
REFUSED = {
    ("maia", "sparse"): "Unsupported device type for sparse layout",
    ("maia", "ddp_of_sparse_gradients"): "Unsupported device type for sparse layout",
    ("maia", "ddp_of_batch_norm"): "SyncBatchNorm expected input tensor to be on",
    ("mtia", "ddp_of_batch_norm"): "SyncBatchNorm expected input tensor to be on",
    ("maia", "fsdp1"): ON_MODULE_MOVES,
    ("maia", "fsdp2"): ON_MODULE_MOVES,
    ("maia", "fsdp2_in_bf16"): ON_MODULE_MOVES,
    ("maia", "fsdp2_offloaded"): ON_MODULE_MOVES,
    ("maia", "fsdp2_clips_gradients"): ON_MODULE_MOVES,
    ("maia", "checkpoint"): ON_MODULE_MOVES,
    ("maia", "fsdp2_on_a_mesh"): "UntypedStorage.resize_: got unexpected device type",
    ("maia", "groups_by_split"): "No device associated with the default pg",
    ("maia", "zero_redundancy"): "Unimplemented backend MAIA",  # Tensor.type()
    ("maia", "zero_in_a_hook"): "Unimplemented backend MAIA",
}
BY_DEFAULT = {"collectives.py": KINDS[:2], "training.py": KINDS[2:3]}


@functools.cache
def found(script: str, name: str, memory: str) -> list[Found]:
    virtual_gpu = "strict" if memory == "gpu" else "off"
    variables = {PROTOTYPE: f"{name}:{memory}", "XPURT_VIRTUAL_GPU": virtual_gpu}
    return run(FOLDER / script, "CPU", XPURT_FALLBACK="silent", **variables)


@pytest.mark.one_in(2)
@pytest.mark.parametrize(
    ("script", "name", "memory", "case"),
    [
        pytest.param(
            *(script, name, memory, case),
            marks=() if (name, memory) in BY_DEFAULT[script] else pytest.mark.slow,
        )
        for script, module in SCRIPTS.items()
        for name, memory in KINDS
        for case in cases(vars(module))
    ],
)
def test_on_two_ranks(script: str, name: str, memory: str, case: str) -> None:
    ended = [each[case] for each in found(script, name, memory)]
    refused = REFUSED.get((name, case))
    if refused is None:
        assert ended == ["ok"] * RANKS
    else:
        assert [refused in each for each in ended] == [True] * RANKS, ended
