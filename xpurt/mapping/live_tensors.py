"""Why live tensors hold a mapping."""

from xpurt import _C


def why_held(change: str, storages: int, size_bytes: int) -> str:
    """The message of a `change` that is refused: "CPU to GPU"."""
    return (
        f"the mapping cannot change from {change} while xpu tensors are alive: "
        f"{storages} {'storage holds' if storages == 1 else 'storages hold'} "
        f"{size_bytes} bytes. Delete the tensors, models and optimizers on xpu, or move "
        f"them with .cpu(), and try again.{_on_cpu()}"
    )


def _on_cpu() -> str:
    """The part of the message about CPU tensors that own memory of xpu."""
    blocks = _C.blocks_of_cpu_tensors()
    if not blocks:
        return ""
    whose = "belongs to a CPU tensor" if blocks == 1 else "belong to CPU tensors"
    return (
        f" {blocks} of these {whose} made under xpurt.set_cpu_kernels(): delete what "
        "was made so, or replace it by .clone() after "
        'xpurt.set_cpu_kernels("native").'
    )
