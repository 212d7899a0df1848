"""Child processes with an accelerator: an emulation, or one that a test layer makes."""

import json
import os
import subprocess
from functools import cache
from pathlib import Path
from tempfile import mkdtemp

from layer_library import compiled_layer
from virtual_gpu.gpu_child import ROOT, layer_library, start

HERE = Path(__file__).parent
# tests/accelerator.sh lists this driver beside that of the CPU.
EMULATION = "libintelocl_emu.so"


def accelerator_library() -> str:
    (library,) = (ROOT / "xpurt/accelerator_layer").glob("_accelerator_layer*.so")
    return str(library)


@cache
def making_library() -> str:
    """The layer made_accelerator.c, compiled."""
    folder = Path(mkdtemp(prefix="xpurt-test-"))
    return str(compiled_layer(HERE / "made_accelerator.c", folder))


def is_emulated() -> bool:
    """Whether the machine has an emulated accelerator and a CPU."""
    return EMULATION in os.environ.get("OCL_ICD_FILENAMES", "")


def beside_accelerator(
    script: str, *, made_of: str, layer: bool = True, **settings: str
) -> subprocess.CompletedProcess[str]:
    """Runs `script` on a machine with an accelerator and another device.

    made_of: "gpu" for an accelerator and a CPU, "cpu" for an accelerator and a GPU. The
        virtual GPU is one of the two; an emulation takes the place of the first pair.
    layer: whether the layer for accelerators is there.
    """
    if made_of == "gpu" and is_emulated() and layer:
        return start(PREAMBLE + script, **settings)
    layers = [layer_library(), making_library(), accelerator_library()]
    changes = {
        "XPURT_VIRTUAL_GPU": "lenient",
        "TEST_ACCELERATOR": made_of,
        "OPENCL_LAYERS": ":".join(layers if layer else layers[:2]),
    }
    if is_emulated():
        changes["OCL_ICD_FILENAMES"] = os.environ["OCL_ICD_FILENAMES"].split(":")[-1]
    return start(PREAMBLE + script, **(changes | settings))


def seen(child: subprocess.CompletedProcess[str]) -> object:
    """What the child printed last, read as JSON."""
    assert child.returncode == 0, child.stderr
    return json.loads(child.stdout.splitlines()[-1])


# At the indentation of the scripts of tests.
PREAMBLE = """
        import json, torch, xpurt
        from xpurt.mapping import current_placement
        def filters(devices):
            return [device.filter_string for device in devices]
        def ordinals():
            return [filters(behind) for behind in current_placement().ordinals]
        def placed(*mapping, **options):
            try:
                xpurt.set_xpu_mapping(*mapping, **options)
            except xpurt.MappingError as error:
                return str(error)
            return ordinals()
"""
