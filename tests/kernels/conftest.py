"""What of the kernels' tests runs by default under which mapping.

Nearly all their time goes into building kernels, which every device needs anew. Under
CPU everything runs; under GPU, where the strict virtual GPU takes other memory and
other launches for the same sources, what `beyond_cpu` chooses. Under "explicit" and
"AUTO", which put the same two devices behind other ordinals, it is a sample. The rest
is marked `slow`.
"""

import pytest


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers",
        "beyond_cpu(**parameters): under mappings other than CPU, only the items with "
        "these values of the parameters run by default",
    )


def is_slow(item: pytest.Function) -> bool:
    params = item.callspec.params if hasattr(item, "callspec") else {}
    if "xpu" not in params:
        return False
    chosen_mappings = item.get_closest_marker("mappings")
    if chosen_mappings is None and params["xpu"] not in ("CPU", "GPU"):
        return True
    chosen = item.get_closest_marker("beyond_cpu")
    if params["xpu"] == "CPU" or chosen is None:
        return False
    return any(params[name] not in values for name, values in chosen.kwargs.items())


# Runs before -m reads the marks. The hook gets the items of all folders.
@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        here = "/kernels/" in item.nodeid and isinstance(item, pytest.Function)
        if here and is_slow(item):
            item.add_marker("slow")
