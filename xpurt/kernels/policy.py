"""Which form of an op is taken where there are several."""

from collections.abc import Iterator
from contextlib import contextmanager

from xpurt import _C
from xpurt.arguments import check_type
from xpurt.config import Config

_chosen_by_user = False


def set_kernel_policy(policy: str) -> None:
    """Chooses how ops are carried out, in the whole process.

    "auto": the form that is expected to finish first, as measured: by xpurt, by
    `xpurt.calibrate` on this machine, and as the program runs. "sycl": a kernel on the
    device's queue, or a oneDNN primitive, wherever there is one. "native": PyTorch's
    CPU kernel everywhere, on copies where the host cannot read the device's memory.

    Raises ValueError for another name, and TypeError for what is no name.
    """
    global _chosen_by_user
    check_type(
        "set_kernel_policy()", policy, str, "a name", 'Give "auto", "sycl" or "native".'
    )
    _C.set_kernel_policy(policy)
    _chosen_by_user = True


def configure(config: Config) -> None:
    """Takes the environment's choices over, unless the program has made its own."""
    if not _chosen_by_user:
        _C.set_kernel_policy(config.kernel_policy)
    _C.set_fallback_mode(config.fallback)
    _C.set_learning(config.learn)
    _C.set_deterministic(config.deterministic)


def get_kernel_policy() -> str:
    """The policy in force: "auto", "sycl" or "native"."""
    return _C.kernel_policy()


@contextmanager
def kernel_policy(policy: str) -> Iterator[None]:
    """Sets the policy for a block, for all threads; then the one before is back."""
    before = get_kernel_policy()
    set_kernel_policy(policy)
    try:
        yield
    finally:
        set_kernel_policy(before)
