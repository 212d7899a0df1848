"""Child processes with a virtual GPU: the devices of a process are found once."""

import json
import os
import subprocess
import sys
import textwrap
from importlib.util import find_spec
from pathlib import Path

import dpctl

# Where the package is imported from; it is not imported here.
PACKAGE = find_spec("xpurt")
assert PACKAGE is not None
assert PACKAGE.origin is not None
ROOT = Path(PACKAGE.origin).parents[1]
HERE = Path(__file__).parent
MODES = ("strict", "lenient")


def layer_library() -> str:
    (library,) = (ROOT / "xpurt" / "virtual_gpu").glob("_virtual_gpu*.so")
    return str(library)


def environment(**changes: str | None) -> dict[str, str]:
    """This process's environment without a virtual GPU, with the CPU driver, changed."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("XPURT_") and name != "OPENCL_LAYERS"
    }
    driver = Path(dpctl.__file__).parents[3] / "libintelocl.so"
    kept.setdefault("OCL_ICD_FILENAMES", str(driver))
    kept["PYTHONPATH"] = f"{HERE}{os.pathsep}{ROOT}"
    kept["TORCH_DEVICE_BACKEND_AUTOLOAD"] = "0"
    kept.update({name: value for name, value in changes.items() if value is not None})
    for name, value in changes.items():
        if value is None:
            kept.pop(name, None)
    return kept


def start(script: str, **changes: str | None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)],
        env=environment(**changes),
        capture_output=True,
        check=False,
        text=True,
        timeout=120,
    )


def on_gpu(script: str, mode: str = "strict", **settings: str) -> object:
    """Runs `script` beside a virtual GPU; what it printed last, read as JSON."""
    settings = {f"XPURT_VIRTUAL_GPU_{name}": value for name, value in settings.items()}
    child = start(
        script, XPURT_VIRTUAL_GPU=mode, OPENCL_LAYERS=layer_library(), **settings
    )
    assert child.returncode == 0, child.stderr
    return json.loads(child.stdout.splitlines()[-1])
