"""Child processes whose GPU, or whose CPU, has no unified shared memory of its own."""

import json
import subprocess
from functools import cache
from pathlib import Path
from tempfile import mkdtemp

from layer_library import compiled_layer
from virtual_gpu.gpu_child import ROOT, layer_library, start

HERE = Path(__file__).parent


def usm_library() -> str:
    (library,) = (ROOT / "xpurt" / "usm_on_svm").glob("_usm_on_svm*.so")
    return str(library)


@cache
def hiding_library() -> str:
    """The layer driver_without_usm.c, compiled."""
    return compile_hiding_library(Path(mkdtemp(prefix="xpurt-test-")))


def compile_hiding_library(folder: Path) -> str:
    """Compiles driver_without_usm.c into `folder`; returns the library's path."""
    return str(compiled_layer(HERE / "driver_without_usm.c", folder))


def on_svm(
    script: str, *, with_usm: bool = True, **settings: str
) -> subprocess.CompletedProcess[str]:
    """Runs `script` beside a virtual GPU of the mode svm, by default with USM on it."""
    layers = [layer_library(), *([usm_library()] if with_usm else [])]
    changes = {"XPURT_VIRTUAL_GPU": "svm", "OPENCL_LAYERS": ":".join(layers)}
    return start(PREAMBLE + script, **(changes | settings))


def on_fine_grained(script: str, **settings: str) -> subprocess.CompletedProcess[str]:
    """Runs `script` on a CPU whose driver has fine-grained SVM, and has no USM."""
    changes = {
        "XPURT_USM_ON_SVM": "on",
        "OPENCL_LAYERS": f"{hiding_library()}:{usm_library()}",
    }
    return start(PREAMBLE + script, **(changes | settings))


def seen(child: subprocess.CompletedProcess[str]) -> object:
    """What the child printed last, read as JSON."""
    assert child.returncode == 0, child.stderr
    return json.loads(child.stdout.splitlines()[-1])


# At the indentation of the scripts of tests. A crash of a child leaves no core file.
PREAMBLE = """
        import json, resource
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
"""
