"""`import torch` calls this through the entry point torch.backends. It never raises.

It lies outside the package on purpose: importing the package adds the device, so a
switch inside of it would come too late, and an error in it would fail `import torch`.
"""

import os
import sys
import warnings
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from runpy import run_path
from types import ModuleType

OFF = ("0", "off", "false", "no")  # as in xpurt.config
# They concern CPU tensors, so xpurt is imported at once.
AT_ONCE = ("XPURT_CPU_KERNELS", "XPURT_LAZY_COPIES")

failure: str | None = None
"""The reason why xpurt did not add the device; None if it did, or did not try."""


def load() -> None:
    """Adds the device, unless XPURT_AUTOLOAD=0 leaves that to the program.

    xpurt is imported at the first use of xpu, if this PyTorch allows it: see Note [First
    use in Python] in xpurt/startup/first_use.py. A failure gives a warning, and is kept
    for `python -m xpurt doctor`.
    """
    if os.environ.get("XPURT_AUTOLOAD", "").strip().lower() in OFF:
        return
    if "xpurt" in sys.modules:  # xpurt's own `import torch` called this
        return
    try:
        if not _wait_for_first_use():
            import xpurt  # noqa: F401
    except Exception as error:
        _report(error)


def _wait_for_first_use() -> bool:
    """Whether xpurt will be imported at the first use of xpu."""
    torch = sys.modules["torch"]
    if torch._C._has_xpu:
        return False
    if any(os.environ.get(name, "").strip() for name in AT_ONCE):
        return False
    spec = find_spec("xpurt")
    if spec is None or spec.origin is None:
        return False
    package = Path(spec.origin).parent
    if not _is_built_for(torch.__version__, package):
        return False
    # A process has one accelerator. If another one may be it, that is decided now.
    if (torch.version.cuda or torch.version.hip) and _load_by_path(
        "xpurt.startup.cuda_gpu", package / "startup/cuda_gpu.py"
    ).has_gpu():
        return False
    native = next(iter(sorted(package.glob(f"_first_use.{_TAG}*.so"))), None)
    if native is None:
        return False
    stand_in = _load_by_path(
        "xpurt.startup.first_use", package / "startup/first_use.py"
    )
    stand_in.install(_load_by_path("xpurt._first_use", native), _report)
    return True


_TAG = sys.implementation.cache_tag  # "cpython-311"


def _is_built_for(found: str, package: Path) -> bool:
    """Whether the extension was built for this PyTorch. `import xpurt` says why not."""
    built_for = package / "_built_for.py"
    if not built_for.exists():
        return False
    return bool(run_path(str(built_for))["TORCH"] == found.partition("+")[0])


def _load_by_path(name: str, path: Path) -> ModuleType:
    """Imports a module of the package, without the package."""
    spec = spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def _report(error: Exception) -> None:
    global failure
    failure = f"{type(error).__name__}: {error}"
    try:
        warnings.warn(
            f"xpurt gives this PyTorch no xpu device: {error} "
            "(`python -m xpurt doctor` says more; XPURT_AUTOLOAD=0 keeps it out)",
            RuntimeWarning,
            stacklevel=3,
        )
    except RuntimeWarning as warning:  # where warnings are errors
        print(warning, file=sys.stderr)
