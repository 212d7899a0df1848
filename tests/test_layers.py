"""The imports between rooms, and the length of files. Reads sources; runs nothing.

A room imports the rooms below it only, and through their faces: `xpurt.mapping`,
never `xpurt.mapping.resolve`, from outside.
"""

import ast
import re
from collections import Counter
from pathlib import Path

import pytest
from test_csrc_layers import FOLDERS as CSRC_FOLDERS
from test_csrc_layers import may_include

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "xpurt"
TOOLS = ROOT / "tools" / "xpurt_tools"
CSRC = PACKAGE / "csrc"

LONGEST_FILE = 420  # lines; the aim is 400
FULLEST_FOLDER = 40  # files

# Modules that lie in the package's own folder, and the room that each belongs to. Any
# other name below xpurt is a room by itself, and so is each below xpurt_tools.
ROOM_OF_MODULE = {
    "_C": "base",
    "_built_for": "base",
    "_layouts": "optimization",
    "_lazy": "lazy",
    "_prototype": "prototype",
    "arguments": "base",
    "optimizer_devices": "base",
    "config": "base",
    "cpp_extension": "base",
    "errors": "base",
    "torch_versions": "base",
    "accelerator_runtime": "runtime",
    "runtime": "runtime",
    "__main__": "command_line",
    "pytest_xpurt": "testing",
    "xpurt_autoload": "autoload",
}

# Rooms whose modules are each a face, and modules of other rooms that are one.
IMPORTED_BY_NAME = {
    "startup",
    "cpu_tensors",
    "sharing",
    "optimization",
    "functional",
    "text",
    "xpurt.compiler.call_time",
    "xpurt.compiler.generated_code",
    "xpurt.compiler.device_ops",
    "xpurt.compiler.renamed.devices",
    "xpurt.mapping.inventory",
    "xpurt.mapping.rank_placement",
    "xpurt.command_line.arguments",
    "xpurt.mapping.auto.planning",
    "xpurt.quantization.in_plain_ops",
    "xpurt.quantization.layers",
    "xpurt.quantization.weights",
}

TOOL_ROOMS = {
    f"xpurt_tools.{name}"
    for name in ("workloads", "simulation", "vendor_package", "bench", "conformance")
}
BELOW_XPU = {"base", "startup", "text", "kernels", "mapping", "streams"}
BELOW_TOOLS = BELOW_XPU | {
    "reports", "xpu", "compiler", "functional", "lazy", "distributed", "runtime", "sharing", "virtual_gpu",
    "usm_on_svm", "accelerator_layer", "prototype", "optimization", "fused_ops", "quantization", "cpu_tensors"
}  # fmt: skip

# The table of rooms. "face" is xpurt/__init__.py, the public names: the tools above
# use xpurt as a user would.
MAY_IMPORT: dict[str, set[str]] = {
    "base": set(),
    "opencl_layer": set(),
    "virtual_gpu": {"base", "opencl_layer"},
    "usm_on_svm": {"base", "opencl_layer"},
    "launch_recorder": {"opencl_layer"},
    "accelerator_layer": {"base", "opencl_layer"},
    "startup": {"base", "virtual_gpu", "usm_on_svm", "accelerator_layer"},
    "text": {"base"},
    "functional": {"base"},
    "kernels": {"base", "text"},
    "mapping": {
        "base",
        "startup",
        "text",
        "kernels",
        "usm_on_svm",
        "accelerator_layer",
    },
    "reports": {"base", "startup", "text", "kernels", "mapping"},
    "streams": {"base", "startup", "text", "kernels", "mapping"},
    "calibration": BELOW_XPU | {"reports"},
    "xpu": BELOW_XPU,
    "compiler": {"base", "functional", "kernels", "mapping", "streams", "xpu"},
    "lazy": {"base", "text", "kernels", "streams", "xpu", "compiler"},
    "prototype": {"base", "startup", "kernels", "mapping", "runtime", "compiler"},
    "distributed": {"base", "streams", "xpu"},
    "runtime": BELOW_XPU | {"xpu"},
    "sharing": BELOW_XPU | {"xpu"},
    "integrations": BELOW_XPU | {"xpu"},
    "cpu_tensors": BELOW_XPU,
    "fused_ops": {"base", "functional"},
    "optimization": BELOW_XPU | {"xpu", "compiler", "functional", "quantization"},
    "quantization": {"base", "startup", "text", "functional"},
    "language": {"base", "startup", "text", "quantization", "sharing"},
    "face": BELOW_XPU
    | {"calibration", "integrations", "xpu", "runtime", "prototype", "sharing"}
    | {"cpu_tensors", "fused_ops", "language", "optimization", "quantization"},
    "autoload": {"face"},
    "testing": BELOW_TOOLS | {"face", "launch_recorder", "opencl_layer"},
    "demo": BELOW_TOOLS | {"face"},
    "command_line": BELOW_TOOLS
    | {"autoload", "calibration", "face", "testing", "demo"},
    # The other package. No room of xpurt imports one of these.
    "xpurt_tools": set(),
    "xpurt_tools.workloads": set(),
    "xpurt_tools.simulation": {"base", "mapping", "xpurt_tools.workloads"},
    "xpurt_tools.vendor_package": set(),
    "xpurt_tools.bench": BELOW_TOOLS | {"face", "xpurt_tools.simulation"},
    "xpurt_tools.conformance": BELOW_TOOLS | {"face", "testing"},
    "xpurt_tools.commands": BELOW_TOOLS | {"face", "command_line"} | TOOL_ROOMS,
}


# The same inside of kernels; "" are the modules beside the folders. They reach each other
# by module: the face of kernels is for the rooms above.
KERNELS_MAY_IMPORT: dict[str, set[str]] = {
    "kinds": set(),
    "rows": {"kinds"},
    "sources": {"kinds", "rows"},
    "cache": set(),
    "costs": {"cache"},
    "": {"kinds", "rows", "sources", "cache", "costs"},
}

OUR_TOP_LEVEL = {
    *("xpurt", "xpurt_tools"),
    *(path.stem for path in ROOT.glob("*xpurt*.py")),
}
FILES_OF_XPURT = [*ROOT.glob("*xpurt*.py"), *sorted(PACKAGE.rglob("*.py"))]
PYTHON_FILES = [*FILES_OF_XPURT, *sorted(TOOLS.rglob("*.py"))]
CPP_FILES = sorted(p for p in PACKAGE.rglob("*") if p.suffix in {".cpp", ".h", ".c"})
FOLDERS = sorted(
    path
    for path in [PACKAGE, *PACKAGE.rglob("*"), TOOLS, *TOOLS.rglob("*")]
    if path.is_dir() and path.name != "__pycache__"
)
TEST_FILES = sorted((ROOT / "tests").rglob("*.py"))


def module_name(path: Path) -> str:
    """`xpurt.mapping.spec` for xpurt/mapping/spec.py, `xpurt` for its __init__.py."""
    root = TOOLS.parent if TOOLS in [path, *path.parents] else ROOT
    parts = path.relative_to(root).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def room_of(module: str) -> str:
    parts = module.split(".")
    if parts[0] == "xpurt" and len(parts) == 1:
        return "face"
    if parts[0] == "xpurt_tools":
        return ".".join(parts[:2])
    name = parts[0] if parts[0] != "xpurt" else parts[1]
    return ROOM_OF_MODULE.get(name, name)


def imports_of(source: str) -> set[str]:
    """Every module of ours that `source` imports, anywhere in it.

    `from xpurt import x` counts as `xpurt.x` where that is a module that the face of xpurt
    does not export, else as `xpurt`.
    """
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "a relative import"
            for alias in node.names:
                below = f"{node.module}.{alias.name}"
                inner = is_module(below) and not exports(str(node.module), alias.name)
                found.add(below if inner else str(node.module))
    return {name for name in found if name.split(".")[0] in OUR_TOP_LEVEL}


def is_module(name: str) -> bool:
    if name in ("xpurt._C", "xpurt._layouts", "xpurt._lazy", "xpurt._prototype"):
        return True
    path = path_of(name)
    return path.with_suffix(".py").exists() or (path / "__init__.py").exists()


def path_of(module: str) -> Path:
    root = TOOLS.parent if module.startswith("xpurt_tools") else ROOT
    return root.joinpath(*module.split("."))


def exports(package: str, name: str) -> bool:
    """Whether `__all__` of a package has the name."""
    face = path_of(package) / "__init__.py"
    return face.exists() and f'    "{name}",\n' in face.read_text()


def faults(importer: str, source: str) -> list[str]:
    """The rules that the imports of the module `importer` break, one sentence each."""
    room = room_of(importer)
    if room not in MAY_IMPORT:
        return [f"{importer} is in no room: add {room!r} to the table, and to DESIGN"]
    found = []
    for module in sorted(imports_of(source)):
        other = room_of(module)
        if other == room:
            continue
        if other not in MAY_IMPORT[room]:
            found.append(f"{importer} ({room}) may not import {module} ({other})")
        elif module.count(".") > 1 and not {other, module} & IMPORTED_BY_NAME:
            found.append(f"{importer} reaches past the face of {other}: {module}")
    return found


def folder_of_kernels(module: str) -> str:
    """`rows` for xpurt.kernels.rows.nn.pooling, "" for xpurt.kernels.policy."""
    path = ROOT.joinpath(*module.split("."))
    below = path.relative_to(PACKAGE / "kernels").parts
    return below[0] if below and (PACKAGE / "kernels" / below[0]).is_dir() else ""


def faults_in_kernels(importer: str, source: str) -> list[str]:
    """The same for a module of kernels, and what it imports of kernels."""
    folder = folder_of_kernels(importer)
    others = {
        module: folder_of_kernels(module)
        for module in imports_of(source)
        if room_of(module) == "kernels"
    }
    return [
        f"{importer} ({folder}) may not import {module} ({other or 'kernels'})"
        for module, other in sorted(others.items())
        if other != folder and other not in KERNELS_MAY_IMPORT[folder]
    ]


@pytest.mark.parametrize("path", PYTHON_FILES, ids=module_name)
def test_a_room_imports_only_the_faces_of_rooms_below_it(path: Path) -> None:
    assert faults(module_name(path), path.read_text()) == []


@pytest.mark.parametrize(
    "path", sorted((PACKAGE / "kernels").rglob("*.py")), ids=module_name
)
def test_a_folder_of_kernels_imports_only_those_below_it(path: Path) -> None:
    assert faults_in_kernels(module_name(path), path.read_text()) == []


@pytest.mark.parametrize("path", FOLDERS, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_folder_can_be_read_at_a_glance(path: Path) -> None:
    files = [file for file in path.iterdir() if file.is_file() and file.suffix != ".so"]
    assert len(files) <= FULLEST_FOLDER, f"{len(files)} files: find the rooms in it"


@pytest.mark.parametrize(
    "path",
    [folder for folder in FOLDERS if list(folder.glob("*.py"))],
    ids=module_name,
)
def test_a_room_says_what_it_holds(path: Path) -> None:
    """Its __init__.py is there, and begins with a docstring."""
    assert ast.get_docstring(ast.parse((path / "__init__.py").read_text()))


def test_files_of_tests_have_names_of_their_own() -> None:
    """Pytest imports those outside of packages by the bare name."""
    names = Counter(
        path.name
        for path in (ROOT / "tests").rglob("test_*.py")
        if not (path.parent / "__init__.py").exists()
    )
    assert [name for name, count in names.items() if count > 1] == []


@pytest.mark.parametrize(
    "name", ["accelerator_layer", "virtual_gpu", "usm_on_svm", "launch_recorder"]
)
def test_an_opencl_layer_stands_alone(name: str) -> None:
    """It needs the OpenCL headers, itself and what layers share; its face, the base."""
    folder, shared = PACKAGE / name / "layer", PACKAGE / "opencl_layer"
    sources = [*folder.glob("*.[ch]"), *shared.glob("*.[ch]")]
    assert sources
    included = {
        name
        for source in sources
        for name in re.findall(r'^#include "([^"]+)"', source.read_text(), re.M)
    }
    assert included <= {source.name for source in sources}


@pytest.mark.parametrize(
    "path",
    PYTHON_FILES + CPP_FILES + TEST_FILES,
    ids=lambda path: str(path.relative_to(ROOT)),
)
def test_a_file_is_one_idea_long(path: Path) -> None:
    lines = len(path.read_text().splitlines())
    assert lines <= LONGEST_FILE, f"{lines} lines: find the second idea in it"


@pytest.mark.parametrize(
    "table",
    [
        MAY_IMPORT,
        KERNELS_MAY_IMPORT,
        {folder: may_include(folder) for folder in CSRC_FOLDERS},
    ],
    ids=["rooms", "kernels", "csrc"],
)
def test_the_table_has_no_circle(table: dict[str, set[str]]) -> None:
    settled: set[str] = set()
    while pending := table.keys() - settled:
        free = {room for room in pending if table[room] <= settled}
        assert free, f"these rooms import each other: {sorted(pending)}"
        settled |= free


@pytest.mark.parametrize(
    ("importer", "source", "fault"),
    [
        ("xpurt.config", "import xpurt.mapping", "may not import xpurt.mapping"),
        ("xpurt.mapping.spec", "from xpurt import xpu", "may not import xpurt"),
        ("xpurt.streams", "def f():\n  import xpurt.demo", "may not import xpurt.demo"),
        ("xpurt.xpu.memory", "import xpurt", "may not import xpurt (face)"),
        (
            "xpurt.xpu",
            "from xpurt.mapping.resolve import x",
            "past the face of mapping",
        ),
        ("xpurt.attic", "import torch", "is in no room"),
        ("xpurt.demo", "import xpurt_tools", "may not import xpurt_tools"),
        ("xpurt_tools.attic", "import torch", "is in no room"),
        (
            "xpurt_tools.workloads.grids",
            "from xpurt_tools import simulation",
            "may not import xpurt_tools.simulation",
        ),
    ],
)
def test_a_fault_is_seen(importer: str, source: str, fault: str) -> None:
    (line,) = faults(importer, source)
    assert fault in line


def test_a_fault_in_kernels_is_seen() -> None:
    source = "from xpurt.kernels.rows.table import ROWS\nfrom xpurt.kernels import ROWS"
    importer = "xpurt.kernels.kinds.row"
    assert faults_in_kernels(importer, source) == [
        f"{importer} (kinds) may not import xpurt.kernels (kernels)",
        f"{importer} (kinds) may not import xpurt.kernels.rows.table (rows)",
    ]
    assert faults_in_kernels("xpurt.kernels.catalog", source) == []


def test_only_the_listed_files_may_import_dpctl() -> None:
    """Queues and devices of dpctl go to users through mapping/devices."""
    importers = {
        module_name(path)
        for path in PYTHON_FILES
        for node in ast.walk(ast.parse(path.read_text()))
        if (isinstance(node, ast.Import) and _dpctl(node.names[0].name))
        or (isinstance(node, ast.ImportFrom) and _dpctl(str(node.module)))
    }
    assert importers <= {"xpurt.mapping.devices"}


def _dpctl(module: str) -> bool:
    return module.split(".")[0] == "dpctl"


def environment_reads(source: str) -> list[str]:
    """The XPURT_* names in `source` that stand in a call or a subscript of environ."""
    return [
        node.value
        for call in ast.walk(ast.parse(source))
        if isinstance(call, ast.Call | ast.Subscript) and "environ" in ast.unparse(call)
        for node in ast.walk(call)
        if isinstance(node, ast.Constant) and str(node.value).startswith("XPURT_")
    ]


def test_only_config_reads_our_environment_variables() -> None:
    readers = {
        module_name(path)
        for path in PYTHON_FILES
        if environment_reads(path.read_text())
    }
    # The entry point decides before the package is imported.
    assert readers <= {"xpurt.config", "xpurt_autoload"}
