"""The kernel policy: which tier computes an op that has several."""

from collections.abc import Iterator
from contextlib import contextmanager

from xpurt import _C
from xpurt.arguments import check_type
from xpurt.config import Config

_chosen_by_user = False


def set_kernel_policy(policy: str) -> None:
    """Sets how ops are computed, for the whole process.

    "auto": the tier that is expected to finish first. The times come from xpurt's
    table, from `xpurt.calibrate` on this machine, and from the running program. "sycl":
    a kernel on the device's queue, or a oneDNN primitive, wherever there is one.
    "native": PyTorch's CPU kernel everywhere, on copies if the host cannot read the
    device's memory.

    Raises ValueError for another name, and TypeError if `policy` is no str.
    """
    global _chosen_by_user
    check_type(
        "set_kernel_policy()", policy, str, "a name", 'Give "auto", "sycl" or "native".'
    )
    _C.set_kernel_policy(policy)
    _chosen_by_user = True


def configure(config: Config) -> None:
    """Applies the environment's settings. A policy that the program has set remains."""
    if not _chosen_by_user:
        _C.set_kernel_policy(config.kernel_policy)
    _C.set_fallback_mode(config.fallback)
    _C.set_learning(config.learn)
    _C.set_deterministic(config.deterministic)
    _C.set_backward_in_calling_thread(config.backward_thread == "caller")


def get_kernel_policy() -> str:
    """The policy in force: "auto", "sycl" or "native"."""
    return _C.kernel_policy()


@contextmanager
def kernel_policy(policy: str) -> Iterator[None]:
    """Sets the policy for a block, in all threads, and restores the previous one."""
    before = get_kernel_policy()
    set_kernel_policy(policy)
    try:
        yield
    finally:
        set_kernel_policy(before)
