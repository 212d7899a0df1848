"""XPU graphs: not offered. Nothing is ever being captured."""

from typing import Any, NoReturn

REASON = (
    "XPU graphs need SYCL's command graphs to record what PyTorch submits; xpurt does "
    "not record them. Run the work eagerly, or use torch.compile."
)


def _refuse() -> NoReturn:
    raise NotImplementedError(REASON)


class XPUGraph:
    """Raises NotImplementedError when made."""

    def __new__(cls, *args: Any, **kwargs: Any) -> NoReturn:
        _refuse()


def graph_pool_handle() -> NoReturn:
    _refuse()


def make_graphed_callables(*args: Any, **kwargs: Any) -> NoReturn:
    """Raises NotImplementedError before it runs any of the callables."""
    _refuse()


def is_current_stream_capturing() -> bool:
    return False
