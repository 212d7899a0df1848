"""The compilers of vendors' GPUs, which need no GPU, and the chips that they compile for."""

import os
import re
import subprocess
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Final

from kinds_of_gpus import AMD, INTEL, INTEL_WITHOUT_DOUBLES, NVIDIA
from recorded_programs import Program

ROOT: Final = Path(__file__).resolve().parents[2]
# Where compilers.sh puts the packages.
PACKAGES: Final = Path(os.environ.get("COMPILERS_DIR", ROOT / "build" / "compilers"))
_LIBRARIES: Final = "usr/lib/x86_64-linux-gnu"


class DoesNotCompile(Exception):
    """Its text is what the compiler said."""


@dataclass(frozen=True, slots=True)
class Figures:
    """What a compiler says of one kernel.

    registers: of a work-item; Intel's are of a thread, which has one for each 32 bytes
    (64 on Ponte Vecchio and later). spilled, local, private: bytes; `private` includes
    arrays that are not in registers. lanes: work-items that run together."""

    kernel: str
    registers: int
    spilled: int
    local: int
    private: int
    lanes: int


@dataclass(frozen=True, slots=True)
class Chip:
    """kind: what it has less of than the CPU's driver. Chips of one kind have the same
    sources. full_registers: the most registers of a work-item, on Intel's of a thread, with
    which a compute unit holds as many of them as it can."""

    name: str
    vendor: str
    compile: Callable[[Program, str], list[Figures]]
    kind: Mapping[str, str]
    full_registers: int

    def occupancy(self, figures: Figures) -> float:
        """The part of a compute unit's threads that registers leave to the kernel."""
        return min(1.0, self.full_registers / max(figures.registers, 1))

    def figures(self, program: Program) -> list[Figures]:
        """Raises DoesNotCompile."""
        return self.compile(program, self.name)


def _intel(program: Program, chip: str) -> list[Figures]:
    with tempfile.TemporaryDirectory() as folder:
        return zeinfo(_built(program, chip, Path(folder)).read_bytes())


def intel_assembly(program: Program, chip: str, kernel: str) -> tuple[str, int]:
    """The instructions of a kernel, and the work-items that run together."""
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        binary = _built(program, chip, folder)
        (figures,) = zeinfo(binary.read_bytes())
        _ocloc("disasm", "-file", binary, "-dump", folder / "parts", "-device", chip)
        return (folder / "parts" / f".text.{kernel}.asm").read_text(), figures.lanes


def _built(program: Program, chip: str, folder: Path) -> Path:
    _ocloc(
        *("compile", "-file", program.written_to(folder), "-device", chip),
        *("-options", program.options, "-out_dir", folder),
        *("-output", "made", "-output_no_suffix"),
    )
    (made,) = folder.glob("made*.bin")
    return made


def _ocloc(*arguments: str | Path) -> None:
    root = PACKAGES / "intel" / "root"
    libraries = root / _LIBRARIES
    (ocloc,) = (root / "usr" / "bin").glob("ocloc-*")
    command: list[str | Path] = [libraries / "ld-linux-x86-64.so.2", "--library-path"]
    _run([*command, libraries, ocloc, *arguments])


def zeinfo(binary: bytes) -> list[Figures]:
    """Of the section .ze_info, which is text."""
    text = re.search(rb"^version: .*?^kernels:.*?\0", binary, re.M | re.S)
    assert text is not None, "the binary has no .ze_info"
    kernels, _, _ = text[0].decode().partition("\nkernels_misc_info:")
    found = re.split(r"^  - name: +", kernels, flags=re.M)[1:]

    def number(each: str, name: str) -> int:
        return sum(map(int, re.findall(rf"^ +{name}: +(\d+)", each, re.M)))

    return [
        Figures(
            kernel=each.partition("\n")[0].strip("'\""),
            registers=number(each, "grf_count"),
            spilled=number(each, "spill_size"),
            local=number(each, "slm_size"),
            private=number(each, "private_size"),
            lanes=number(each, "simd_size"),
        )
        for each in found
        if "Intel_Symbol_Table_Void_Program" not in each
    ]


def _clang(program: Program, folder: Path, *flags: str | Path) -> Path:
    """Assembler's text of the program."""
    root = PACKAGES / "clang" / "root"
    made = folder / "made.s"
    libraries = f"{root / _LIBRARIES}:{root / 'usr/lib/llvm-19/lib'}"
    command = [
        *(root / "usr/bin/clang-19", "-x", "cl", *program.options.split()),
        *("-Xclang", "-finclude-default-header", "-O2", "-w", "-nogpulib", *flags),
        *("-S", program.written_to(folder), "-o", made),
    ]
    _run(command, LD_LIBRARY_PATH=libraries)
    return made


def _bitcode(name: str) -> tuple[str | Path, ...]:
    library = PACKAGES / "clang" / "root" / "usr" / "lib" / "clc" / f"{name}.bc"
    return "-Xclang", "-mlink-builtin-bitcode", "-Xclang", library


def _nvidia(program: Program, chip: str) -> list[Figures]:
    (ptxas,) = (PACKAGES / "nvidia").glob("nvidia/*/bin/ptxas")
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder) / "made.ptx"
        made.write_text(_ptx(program))
        binary = Path(folder) / "made.cubin"
        return nvidia_figures(_run([ptxas, f"-arch={chip}", "-v", made, "-o", binary]))


@lru_cache(maxsize=8)
def _ptx(program: Program) -> str:
    """The same for all chips."""
    with tempfile.TemporaryDirectory() as folder:
        target = ("-target", "nvptx64-nvidia-nvcl", *_bitcode("nvptx64--nvidiacl"))
        return _clang(program, Path(folder), *target).read_text()


def nvidia_figures(told: str) -> list[Figures]:
    """Of what the assembler says."""
    return [
        Figures(
            kernel=name,
            registers=_number(r"Used (\d+) registers", each),
            spilled=_number(r"(\d+) bytes spill stores", each),
            local=_number(r"(\d+) bytes smem", each),
            private=_number(r"(\d+) bytes stack frame", each),
            lanes=32,
        )
        for name, each in _parts(r"Compiling entry function '(\w+)'", told)
    ]


# From OpenCL C 2.0 on clang declares these for pointers without an address space alone,
# and libclc defines them for pointers with one.
_MISSING_IN_LIBCLC = """\
#pragma OPENCL EXTENSION cl_khr_fp16 : enable
float __attribute__((overloadable)) vload_half(size_t i, const half* p) { return p[i]; }
void __attribute__((overloadable)) vstore_half_rte(float value, size_t i, half* p) {
  p[i] = value;
}
"""


def _amd(program: Program, chip: str) -> list[Figures]:
    text = amd_assembly(program, chip)
    if missing := undefined_functions(text):
        raise DoesNotCompile(f"no library has {', '.join(sorted(missing))}")
    return amd_figures(text)


def amd_assembly(program: Program, chip: str) -> str:
    if "-cl-std=CL1" not in program.options:
        program = replace(program, source=_MISSING_IN_LIBCLC + program.source)
    with tempfile.TemporaryDirectory() as folder:
        library = _bitcode("amdgcn--amdhsa")
        target = ("-target", "amdgcn-amd-amdhsa", f"-mcpu={chip}")
        return _clang(program, Path(folder), *target, *library).read_text()


def undefined_functions(text: str) -> set[str]:
    """Those that AMD's assembler's text calls. Registers are saved around a call."""
    return set(re.findall(r"(\w+)@rel32@lo", text)) - set(
        re.findall(r"^(\w+):", text, flags=re.M)
    )


def amd_figures(text: str) -> list[Figures]:
    """Of the description of kernels at the end of the assembler's text."""
    _, _, kernels = text.rpartition("amdhsa.kernels:")
    return [
        Figures(
            kernel=_word(r"^    \.name: +(\w+)", each),
            registers=_number(r"\.vgpr_count: +(\d+)", each),
            spilled=4 * _number(r"\.vgpr_spill_count: +(\d+)", each),
            local=_number(r"\.group_segment_fixed_size: +(\d+)", each),
            private=_number(r"\.private_segment_fixed_size: +(\d+)", each),
            lanes=_number(r"\.wavefront_size: +(\d+)", each),
        )
        for each in re.split(r"^  - (?=\.a)", kernels, flags=re.M)[1:]
    ]


def _parts(of: str, text: str) -> list[tuple[str, str]]:
    found = re.split(of, text)
    return list(zip(found[1::2], found[2::2], strict=True))


def _number(of: str, text: str) -> int:
    found = re.search(of, text)
    return 0 if found is None else int(found[1])


def _word(of: str, text: str) -> str:
    found = re.search(of, text, re.M)
    assert found is not None, text
    return found[1]


def _run(command: list[str | Path], **settings: str) -> str:
    done = subprocess.run(
        command, env={**os.environ, **settings}, capture_output=True, text=True
    )
    told = done.stdout + done.stderr
    if done.returncode != 0:
        raise DoesNotCompile(told)
    return told


# A compute unit of NVIDIA's has 65,536 registers for 1,024, 1,536 or 2,048 work-items. A SIMD
# of AMD's has for each lane 512 for 8 wavefronts (CDNA), or 1,024 or 1,536 for 16 (RDNA).
CHIPS: Final = (
    Chip("tgllp", "Intel", _intel, INTEL_WITHOUT_DOUBLES, 128),  # Tiger Lake
    Chip("dg2", "Intel", _intel, INTEL_WITHOUT_DOUBLES, 128),  # Alchemist
    Chip("mtl", "Intel", _intel, INTEL, 128),  # Meteor Lake
    Chip("pvc", "Intel", _intel, INTEL, 128),  # Ponte Vecchio
    Chip("lnl", "Intel", _intel, INTEL, 128),  # Lunar Lake
    Chip("bmg", "Intel", _intel, INTEL, 128),  # Battlemage
    Chip("sm_75", "NVIDIA", _nvidia, NVIDIA, 64),
    Chip("sm_86", "NVIDIA", _nvidia, NVIDIA, 42),
    Chip("sm_90", "NVIDIA", _nvidia, NVIDIA, 32),
    Chip("sm_120", "NVIDIA", _nvidia, NVIDIA, 42),
    Chip("gfx90a", "AMD", _amd, AMD, 64),
    Chip("gfx1030", "AMD", _amd, AMD, 64),
    Chip("gfx1100", "AMD", _amd, AMD, 96),
    Chip("gfx1201", "AMD", _amd, AMD, 96),
)
