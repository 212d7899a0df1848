"""PyTorch's own kernels on xpu tensors: rows are off, so that results are exact."""

from collections.abc import Iterator

import pytest

from xpurt import _C


@pytest.fixture(autouse=True)
def native_only() -> Iterator[None]:
    """No kernel of xpurt's, and no warning where the operands have to be copied."""
    policy, mode = _C.kernel_policy(), _C.fallback_mode()
    _C.set_kernel_policy("native")
    _C.set_fallback_mode("silent")
    yield
    _C.set_kernel_policy(policy)
    _C.set_fallback_mode(mode)
