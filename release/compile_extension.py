"""Compiles xpurt._C and the OpenCL layers: the command build_ext of setup.py.

Needs PyTorch, as this module imports it.
"""

import hashlib
import os
import runpy
import shlex
import shutil
import subprocess
import sys
from functools import partial
from importlib.metadata import version
from itertools import groupby
from pathlib import Path
from typing import Any

import check_ops
import torch
from setuptools import Extension
from torch.utils import cpp_extension

ROOT = Path(__file__).resolve().parents[1]
CSRC = Path("xpurt/csrc")
FIRST_USE = CSRC / "first_use"  # the sources of a library of its own
CUDA_BUILD = CSRC / "c10/cuda_build.cpp"  # in both libraries
# Folders whose sources are a library of their own: see Note [Rooms of their own].
ROOMS = ("layouts", "lazy", "prototype")
# OpenCL layers, in xpurt/NAME/layer.
LAYERS = ("accelerator_layer", "virtual_gpu", "usm_on_svm", "launch_recorder")
BUNDLED = 8  # the largest number of sources of one folder compiled as one file

# XPURT_SANITIZE compiles the extension and the OpenCL layers with sanitizers. Such a
# build has objects of its own; see tests/sanitize/run_sanitizers.py.
SANITIZERS = {
    "": [],
    # `vptr` needs type information that PyTorch and SYCL do not export.
    "address": ["-fsanitize=address,undefined", "-fno-sanitize=vptr"],
    # Fences are outside the model of ThreadSanitizer; GCC warns of each.
    "thread": ["-fsanitize=thread", "-Wno-tsan"],
}
SANITIZE = os.environ.get("XPURT_SANITIZE", "")
if SANITIZE not in SANITIZERS:
    sys.exit(f"XPURT_SANITIZE={SANITIZE}: give one of {', '.join(SANITIZERS)[2:]}")
INSTRUMENT = SANITIZERS[SANITIZE]
# As a shared library, UndefinedBehaviorSanitizer would write its reports to the standard
# error, whatever UBSAN_OPTIONS is: AddressSanitizer replaces the function for that.
STATIC_UBSAN = ["-static-libubsan", "-Wl,--exclude-libs,libubsan.a"]
LINK_SANITIZER = [*INSTRUMENT, *(STATIC_UBSAN if SANITIZE == "address" else [])]
# From site-packages/xpurt: PyTorch's libraries, and <prefix>/lib with those of SYCL.
RUN_PATH = "-Wl,-rpath,$ORIGIN:$ORIGIN/../torch/lib:$ORIGIN/../../.."
OPTIMIZE = ["-O1", "-g1", "-fno-omit-frame-pointer"] if SANITIZE else ["-O2", "-g0"]


_torch: Any = cpp_extension  # it has no types

# By path: importing the package would need the extension that is built here.
_sycl = runpy.run_path(str(ROOT / "xpurt/cpp_extension.py"))
include_dir, library_dir = _sycl["include_dir"], _sycl["library_dir"]
SYCL_FLAGS = _sycl["SYCL_FLAGS"]
_versions = runpy.run_path(str(ROOT / "xpurt/torch_versions.py"))
TORCH = torch.__version__.partition("+")[0]
SERIES = _versions["series_of"](TORCH)


BUILT_FOR = """\
\"\"\"The PyTorch that xpurt._C was built for; written by setup.py.\"\"\"

TORCH = "{torch}"
CXX11_ABI = {abi}
"""


def build_layer(name: str, directory: Path) -> None:
    """Compiles an OpenCL layer: a plain C library that the OpenCL loader loads."""
    library = directory / name / f"_{name}.so"
    folders = (ROOT / "xpurt" / name / "layer", ROOT / "xpurt/opencl_layer")
    files = sorted(file for folder in folders for file in folder.glob("*.[ch]"))
    changed = max(file.stat().st_mtime for file in (*files, *folders))
    if library.exists() and library.stat().st_mtime >= changed:
        return
    library.parent.mkdir(parents=True, exist_ok=True)
    command = [
        *shlex.split(os.environ.get("CC", "gcc")),
        *("-std=gnu11", "-fPIC", "-shared", "-fvisibility=hidden", "-pthread"),
        *OPTIMIZE,
        *LINK_SANITIZER,
        *("-Wall", "-Wextra", "-DCL_TARGET_OPENCL_VERSION=300"),
        *("-I" + include_dir("intel-sycl-rt", "CL/cl_layer.h"), f"-I{folders[1]}"),
        *(str(file) for file in files if file.suffix == ".c"),
        *("-o", str(library)),
        # It stays loaded until the process ends: see clDeinitLayer in opencl_layer.c.
        *("-Wl,-z,nodelete", "-Wl,-z,defs"),
    ]
    subprocess.run(command, check=True)


def is_cached(compiler: str) -> bool:
    """Whether the compiler is a compiler cache, or PyTorch runs it through one."""
    caches = ("ccache", "sccache")
    program = Path(os.path.realpath(shutil.which(compiler) or compiler)).name
    wrapped = not os.environ.get("TORCH_NO_COMPILER_WRAPPER")
    return program in caches or (wrapped and any(map(shutil.which, caches)))


def gcc_version(compiler: list[str]) -> str:
    """The output of `--version` if the compiler is GCC, else an empty text."""
    told = subprocess.run([*compiler, "--version"], capture_output=True, text=True)
    return told.stdout if "Free Software Foundation" in told.stdout else ""


def precompile(
    folder: Path, compiler: list[str], gcc: str, flags: list[str]
) -> list[str]:
    """Compiles the headers that most files include. Returns the options that use the
    result; none if the compiler is not GCC."""
    if not gcc:
        return []
    # GCC does not check whether headers included by the header have changed.
    source = (CSRC / "precompiled.h").read_text()
    read = (gcc, *flags, torch.__version__, version("intel-sycl-rt"), source)
    digest = hashlib.sha256("\n".join(read).encode()).hexdigest()[:16]
    header = folder / f"precompiled-{digest}" / "precompiled.h"
    compiled = header.with_suffix(".h.gch")
    if not compiled.exists():
        for old in folder.glob("precompiled-*"):
            shutil.rmtree(old)
        header.parent.mkdir(parents=True)
        header.write_text(source)
        unfinished = compiled.with_suffix(".unfinished")
        options = ["-x", "c++-header", str(header), "-o", str(unfinished)]
        subprocess.run([*compiler, *flags, *options], check=True)
        unfinished.rename(compiled)
    return ["-include", str(header), "-Winvalid-pch"]


def bundle(folder: Path, sources: list[str]) -> list[str]:
    """Makes files that each include several sources of one folder, and returns them.
    Most of the time of a short source goes into templates that all sources instantiate.
    """
    wanted = {}
    paths = sorted(map(Path, sources), key=lambda p: (p.parent, p.name))
    for parent, group in groupby(paths, key=lambda p: p.parent):
        files = list(group)
        count = -(-len(files) // BUNDLED)
        for i in range(count):
            several = files[i::count]
            lines = [f'#include "{(ROOT / file).as_posix()}"\n' for file in several]
            name = "_".join([*parent.relative_to(CSRC).parts, several[0].name])
            wanted[folder / name] = "".join(lines)
    folder.mkdir(parents=True, exist_ok=True)
    for old in set(folder.glob("*.cpp")) - set(wanted):
        old.unlink()
    for file, text in wanted.items():
        # A file that is written again is compiled again.
        if not file.exists() or file.read_text() != text:
            file.write_text(text)
    return [str(file.relative_to(ROOT)) for file in wanted]


def room_of(file: Path) -> str:
    """The room of a source or of an object; "" for the core."""
    return next((room for room in ROOMS if room in file.parts), "")


class Build(cpp_extension.BuildExtension):
    """Keeps the objects in build/, so that a second build compiles only changed files.
    Each series of PyTorch has objects of its own there. Writes the version of PyTorch
    that the extension belongs to beside it."""

    def finalize_options(self) -> None:
        super().finalize_options()
        series = f"torch{SERIES}"
        parts = [sys.implementation.cache_tag, sys.platform, series, SANITIZE]
        tag = "-".join(filter(None, parts))
        self.build_temp = str(ROOT / "build" / f"objects-{tag}")

    def build_extension(self, extension: Extension) -> None:
        if extension.name.removeprefix("xpurt._") in ROOMS:
            return
        if extension.name == "xpurt._first_use":
            # ninja forgets the objects that are not in its last file.
            with_all = self.build_temp
            self.build_temp = f"{with_all}-first-use"
            super().build_extension(extension)
            self.build_temp = with_all
            return
        # Without it at::parallel_for is a loop. GCC's code calls functions that are in
        # PyTorch's own libgomp, and no other libgomp is linked. Other compilers call
        # other libraries.
        compiler = shlex.split(_torch.get_cxx_compiler())
        gcc = gcc_version(compiler)
        if gcc:
            extension.extra_compile_args.append("-fopenmp")
        folders = [*extension.include_dirs, *self.compiler.include_dirs]
        flags = [
            *self.compiler.compiler_so[1:],
            *(f"-I{Path(folder).resolve()}" for folder in folders),
            *extension.extra_compile_args,
        ]
        # A cache finds neither of these in another folder, and works best if each
        # source is compiled by itself.
        if not is_cached(compiler[0]):
            folder = Path(self.build_temp)
            extension.extra_compile_args += precompile(folder, compiler, gcc, flags)
            extension.sources = [
                each
                for room in ("", *ROOMS)
                for each in bundle(
                    folder / "bundles" / room,
                    [each for each in extension.sources if room_of(Path(each)) == room],
                )
            ]
        link = self.compiler.link_shared_object
        self.compiler.link_shared_object = partial(self._link, link)
        super().build_extension(extension)
        self.compiler.link_shared_object = link

    def _link(
        self, link: Any, objects: list[str], core: str, *args: Any, **named: Any
    ) -> None:
        """Links the core, and each room with it."""
        by_room: dict[str, list[str]] = {room: [] for room in ("", *ROOMS)}
        for each in objects:
            by_room[room_of(Path(each).relative_to(self.build_temp))].append(each)
        link(by_room.pop(""), core, *args, **named)
        named["libraries"] = [*named["libraries"], f":{Path(core).name}"]
        named["library_dirs"] = [*named["library_dirs"], str(Path(core).parent)]
        for room, of_room in by_room.items():
            link(of_room, self.get_ext_fullpath(f"xpurt._{room}"), *args, **named)

    def run(self) -> None:
        if (reason := check_ops.fault()) is not None:
            sys.exit(reason)
        beside = Path(self.get_ext_fullpath("xpurt._C")).parent
        built_for = beside / "_built_for.py"
        text = BUILT_FOR.format(torch=TORCH, abi=torch.compiled_with_cxx11_abi())
        if not built_for.exists() or built_for.read_text() != text:
            # Linked again: by its time alone, the one of another PyTorch is up to date.
            self.force = True
        super().run()
        built_for.write_text(text)
        for layer in LAYERS:
            build_layer(layer, beside)


def first_use() -> Extension:
    """The library that stands for the extension until xpu is used: see Note [First use].
    It is linked to PyTorch alone."""
    made: Extension = _torch.CppExtension(
        "xpurt._first_use",
        [*sorted(str(p) for p in FIRST_USE.glob("*.cpp")), str(CUDA_BUILD)],
        include_dirs=[
            str(ROOT / CSRC),
            include_dir("intel-sycl-rt", "sycl/version.hpp"),
        ],
        extra_link_args=[*LINK_SANITIZER, "-Wl,--enable-new-dtags", RUN_PATH],
        extra_compile_args=[
            *("-std=c++20", *OPTIMIZE, *INSTRUMENT, "-Wall", "-Wno-unknown-pragmas"),
            *(
                "-fvisibility=hidden",
                "-DAT_PER_OPERATOR_HEADERS",
                "-DFMT_HEADER_ONLY=1",
            ),
        ],
    )
    return made


def rooms() -> list[Extension]:
    """The libraries that are linked with the extension."""
    return [Extension(f"xpurt._{room}", []) for room in ROOMS]


def extension() -> Extension:
    # xpurt/startup/driver.py loads the libraries of SYCL and oneDNN by path, before the
    # extension, since some of them do not find each other. The run path is for programs
    # that read the extension without Python, such as ldd and debuggers.
    sources = sorted(str(p) for p in CSRC.rglob("*.cpp") if FIRST_USE not in p.parents)
    made: Extension = _torch.CppExtension(
        "xpurt._C",
        sources,
        include_dirs=[
            str(ROOT / CSRC),
            include_dir("intel-sycl-rt", "sycl/sycl.hpp"),
            include_dir("onednn-devel", "dnnl_sycl.hpp"),
        ],
        library_dirs=[
            library_dir("intel-sycl-rt", "libsycl.so"),
            library_dir("onednn", "libdnnl.so.3"),
        ],
        libraries=["sycl", "OpenCL", ":libdnnl.so.3"],
        extra_link_args=[*LINK_SANITIZER, "-Wl,--enable-new-dtags", RUN_PATH],
        extra_compile_args=[
            "-std=c++20",
            *OPTIMIZE,
            *INSTRUMENT,
            "-Wall",
            "-Wno-sign-compare",
            "-Wno-unknown-pragmas",
            "-fvisibility=hidden",
            "-DAT_PER_OPERATOR_HEADERS",
            *SYCL_FLAGS,
            # PyTorch's wheel has the headers of fmt, and exports none of it.
            "-DFMT_HEADER_ONLY=1",
        ],
    )
    return made
