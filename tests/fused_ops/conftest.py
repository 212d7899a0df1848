"""Fused ops run under CPU and GPU by default: every device needs kernels of its own.
Their kernels for CPU tensors run once."""

import pytest


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers", "on_cpu: by default the test runs under the mapping CPU alone"
    )


# Runs before -m reads the marks. The hook gets the items of all folders.
@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "/fused_ops/" in item.nodeid and isinstance(item, pytest.Function):
            params = item.callspec.params if hasattr(item, "callspec") else {}
            mapping = params.get("xpu", "CPU")
            alone = item.get_closest_marker("on_cpu") is not None
            alone = alone or params.get("device") == "cpu"
            if mapping not in (("CPU",) if alone else ("CPU", "GPU")):
                item.add_marker("slow")
            elif alone:
                item.add_marker(pytest.mark.mappings("CPU"))


@pytest.fixture(params=["cpu", "xpu"])
def device(request: pytest.FixtureRequest) -> str:
    """Tensors of the CPU, and of xpu under the mapping of the fixture `xpu`."""
    return str(request.param)
