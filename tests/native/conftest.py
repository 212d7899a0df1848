"""PyTorch's own kernels on xpu tensors: rows are off, so that results are exact."""

from collections.abc import Iterator

import pytest

from xpurt import _C


@pytest.fixture(autouse=True)
def native_only() -> Iterator[None]:
    """No kernel of xpurt's, and no warning where the operands have to be copied."""
    policy, mode = _C.kernel_policy(), _C.testing.fallback_mode()
    _C.set_kernel_policy("native")
    _C.set_fallback_mode("silent")
    yield
    _C.set_kernel_policy(policy)
    _C.set_fallback_mode(mode)


SAMPLED = ("add.Tensor", "add_.Tensor", "add.out", "cat", "mm", "native_layer_norm")


# Unboxed ops are for memory that the host reads. Otherwise all of them call the boxed
# kernel in the same manner: a sample of them is enough.
@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.name != "test_unboxed.py" or not isinstance(item, pytest.Function):
            continue
        params = item.callspec.params if hasattr(item, "callspec") else {}
        if params.get("xpu", "CPU") != "CPU" and params.get("op", "cat") not in SAMPLED:
            item.add_marker("slow")
