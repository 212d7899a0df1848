"""Builds the wheel for this Python and the installed PyTorch, and that of xpurt-tools:
`make wheels`.

    python release/build_wheels.py [--directory DIRECTORY]

auditwheel gives the wheel the tag of the oldest Linux whose C and C++ libraries have the
symbols that the extension uses. It copies no library into the wheel: those of PyTorch,
SYCL, OpenCL and oneDNN are in packages that xpurt requires.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from zipfile import ZipFile

from package_version import ROOT
from wheel_contents import (
    EXTENSION,
    faults,
    faults_of_tools,
    files_of_the_tools,
    files_of_the_tree,
)

IN_OTHER_PACKAGES = (
    "libtorch*.so",
    "libc10*.so",
    "libsycl.so.*",
    "libOpenCL.so.*",
    "libdnnl.so.*",
)
# The tag of PyTorch's own wheels.
PYTORCH_TAG = (2, 28)
RUN_PATH = "$ORIGIN:$ORIGIN/../torch/lib:$ORIGIN/../../.."


def build(folder: Path) -> Path:
    """Builds the wheel as the compiler's own Linux names it. Objects in build/ are kept."""
    # A file that was removed from the tree would stay there, and be in the wheel.
    for old in (ROOT / "build").glob("lib*"):
        shutil.rmtree(old)
    _run("pip", "wheel", "-q", "--no-deps", "--no-build-isolation", "-w", folder, ROOT)
    (wheel,) = folder.glob("xpurt-*.whl")
    return wheel


def build_tools(directory: Path) -> Path:
    """Builds the wheel of xpurt-tools in the directory. Ends if it is not complete."""
    shutil.rmtree(ROOT / "build" / "tools", ignore_errors=True)
    with tempfile.TemporaryDirectory() as folder:
        options = ("-q", "--no-deps", "--no-build-isolation")
        _run("pip", "wheel", *options, "-w", folder, ROOT / "tools")
        (built,) = Path(folder).glob("xpurt_tools-*.whl")
        if found := faults_of_tools(built, files_of_the_tools()):
            sys.exit("\n".join([f"{built.name} is not complete:", *found]))
        return Path(shutil.copy(built, directory))


def with_tag(wheel: Path, directory: Path) -> Path:
    """The wheel with the tag of the oldest Linux that it runs on, in the directory."""
    before = set(directory.glob("*.whl"))
    excluded = [f"--exclude={pattern}" for pattern in IN_OTHER_PACKAGES]
    # The tag alone, without those of newer Linuxes that follow from it.
    _run("auditwheel", "repair", "--only-plat", *excluded, "-w", directory, wheel)
    made = set(directory.glob("*.whl")) - before
    if len(made) != 1:
        sys.exit(f"auditwheel made {sorted(made) or 'no wheel'} from {wheel.name}")
    return made.pop()


def linux_of(name: str) -> tuple[int, int]:
    """The glibc of the tag, (2, 28) for "...-manylinux_2_28_x86_64.whl".

    Raises ValueError if there is no such tag.
    """
    found = re.search(r"-manylinux_(\d+)_(\d+)_\w+\.whl$", name)
    if found is None:
        raise ValueError(f"{name} has no tag manylinux_*")
    return int(found[1]), int(found[2])


def run_path_of(wheel: Path) -> str:
    """The run path of the extension in the wheel."""
    with ZipFile(wheel) as archive, tempfile.TemporaryDirectory() as folder:
        (name,) = (n for n in archive.namelist() if re.match(EXTENSION, n))
        library = archive.extract(name, folder)
        command = ["patchelf", "--print-rpath", library]
        return subprocess.run(
            command, check=True, capture_output=True, text=True, env=_environment()
        ).stdout.strip()


def _run(module: str, *arguments: object) -> None:
    command = [sys.executable, "-m", module, *map(str, arguments)]
    subprocess.run(command, check=True, cwd=ROOT, env=_environment())


def _environment() -> dict[str, str]:
    """With the programs of this interpreter's environment, as it may not be active."""
    programs = str(Path(sys.executable).parent)
    return {**os.environ, "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--directory", type=Path, default=ROOT / "dist")
    directory = parser.parse_args().directory.resolve()
    directory.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        built = build(Path(folder))
        (directory / built.name).unlink(missing_ok=True)
        for old in directory.glob(f"{built.name.rpartition('-')[0]}-*.whl"):
            old.unlink()
        wheel = with_tag(built, directory)
    found = faults(wheel, files_of_the_tree())
    if (run_path := run_path_of(wheel)) != RUN_PATH:
        found.append(f"the run path of xpurt._C is {run_path!r}; {RUN_PATH} is wanted")
    if found:
        wheel.unlink()
        sys.exit("\n".join([f"{wheel.name} is not complete:", *found]))
    for made in (wheel, build_tools(directory)):
        print(f"{made} ({made.stat().st_size / 1e6:.1f} MB)")
    if (linux := linux_of(wheel.name)) > PYTORCH_TAG:
        print(
            f"It needs glibc {linux[0]}.{linux[1]}, since this compiler's libraries are "
            f"as new. PyTorch's wheels need {PYTORCH_TAG[0]}.{PYTORCH_TAG[1]}: "
            "release/Dockerfile builds for that."
        )


if __name__ == "__main__":
    main()
