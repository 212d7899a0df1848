"""What runs the compilers of vendors' GPUs. The compilers themselves are packages of
several hundred MB: see compilers.sh."""

import sys
from dataclasses import replace
from pathlib import Path

import pytest
from chips import (
    CHIPS,
    DoesNotCompile,
    Figures,
    amd_figures,
    nvidia_figures,
    undefined_functions,
    zeinfo,
)
from recorded_programs import Program, record
from run_compilers import Result, compiled, faults, table, unused
from work_of_rows import Counted, amd_instructions, intel_instructions, pointwise_rows

ZEINFO = b"""\0ELF\0---
version:         '1.64'
kernels:
  - name:            sum_of_rows
    execution_env:
      grf_count:       128
      simd_size:       16
      slm_size:        4096
      spill_size:      2304
    per_thread_memory_buffers:
      - type:            scratch
        size:            4608
  - name:            Intel_Symbol_Table_Void_Program
    execution_env:
      grf_count:       128
      simd_size:       8
kernels_misc_info:
  - name:            sum_of_rows
    args_info:
      - index:           0
\0\0"""

PTXAS = """\
ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'first' for 'sm_90'
ptxas info    : Function properties for first
    64 bytes stack frame, 12 bytes spill stores, 16 bytes spill loads
ptxas info    : Used 40 registers, used 1 barriers, 1024 bytes smem
ptxas info    : Compiling entry function 'second' for 'sm_90'
ptxas info    : Function properties for second
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 12 registers, used 0 barriers
"""

AMD = """\
\t.section .text
amdhsa.kernels:
  - .args:
      - .address_space:  global
        .name:           result
        .size:           8
    .group_segment_fixed_size: 512
    .language:       OpenCL C
    .name:           rows
    .private_segment_fixed_size: 32
    .vgpr_count:     18
    .vgpr_spill_count: 3
    .wavefront_size: 64
amdhsa.target:   amdgcn-amd-amdhsa--gfx90a
"""

PROGRAM = Program("-cl-std=CL3.0", "__kernel void k() {}")


def test_figures_of_intel() -> None:
    assert zeinfo(ZEINFO) == [Figures("sum_of_rows", 128, 2304, 4096, 0, 16)]


def test_figures_of_nvidia() -> None:
    assert nvidia_figures(PTXAS) == [
        Figures("first", 40, 12, 1024, 64, 32),
        Figures("second", 12, 0, 0, 0, 32),
    ]


def test_figures_of_amd() -> None:
    assert amd_figures(AMD) == [Figures("rows", 18, 12, 512, 32, 64)]


def test_a_function_that_no_library_has_is_found() -> None:
    text = """
here:
  s_add_u32 s0, s0, here@rel32@lo+4
  s_add_u32 s0, s0, _Z3expf@rel32@lo+4
  s_addc_u32 s1, s1, _Z3expf@rel32@hi+12
"""
    assert undefined_functions(text) == {"_Z3expf"}


def results(spilled: int = 0, error: str = "") -> list[Result]:
    figures = [Figures("rows", 128, spilled, 0, 0, 16)]
    return [Result(CHIPS[0], PROGRAM, [] if error else figures, error)]


def test_a_spill_and_an_error_are_faults(monkeypatch: pytest.MonkeyPatch) -> None:
    assert faults(results()) == []
    (spill,) = faults(results(spilled=64))
    assert "rows" in spill
    assert "spills 64 bytes" in spill
    (error,) = faults(results(error="in line 3\nline 3: error: no such name\n"))
    assert error.endswith("line 3: error: no such name")
    known = {(CHIPS[0].name, "rows"): "a reason"}
    monkeypatch.setattr("run_compilers.known_spills", lambda: known)
    assert faults(results(spilled=64)) == []
    assert unused(results(spilled=64)) == []
    (entry,) = unused(results())
    assert "rows does not spill" in entry


def test_the_table_counts() -> None:
    made = table([*results(spilled=64), *results(error="error")])
    assert (
        f"| Intel {CHIPS[0].name} | 2 | 1 | 1 | 128, 128 | 1.00, 1.00 | 0 | 16 |"
        in made
    )


def test_registers_leave_room_for_fewer_threads() -> None:
    (hopper,) = (each for each in CHIPS if each.name == "sm_90")
    occupancy = [hopper.occupancy(Figures("", n, 0, 0, 0, 32)) for n in (0, 32, 64)]
    assert occupancy == [1, 1, 0.5]


def test_instructions_are_those_of_a_work_item() -> None:
    intel = """L0:
(W)     mov (16|M0)              r127.0<1>:ud  0x0:ud
        add (32|M0)              r8.0<1>:f     r4.0<0;1,0>:f     r6.0<4;1,0>:f   {I@2}
(~f2.0) goto (32|M0)                         L4784                  L4784
L496:
(W&f0)  mov (1|M0)               r2.0<1>:ud    0x3EA2F983:ud
        illegal
"""
    assert intel_instructions(intel, 32) == 0.5 + 1 + 1 + 0.5
    amd = """
other:
\tv_mov_b32_e32 v0, 0
\ts_endpgm
exp_f:
\ts_load_b32 s0, s[0:1], 0x0
\tv_add_f32_e32 v0, v0, v1
\tglobal_store_b32 v[0:1], v0, off
\tv_exp_f32_e32 v0, v0
\ts_endpgm
\tv_nop
"""
    assert amd_instructions(amd, "exp_f") == 2
    assert amd_instructions(amd.replace("v_exp_f32_e32", "s_swappc_b64"), "exp_f") == 0


@pytest.mark.parametrize(("flops", "is_off"), [(20, False), (9, True), (41, True)])
def test_a_row_whose_flops_are_far_from_the_figure_is_off(
    flops: float, is_off: bool
) -> None:
    row = replace(pointwise_rows()[0], flops=flops)
    assert Counted(row, intel=10, amd=40).is_off == is_off
    assert Counted(row, intel=20, amd=0).is_off == is_off


def test_a_compiler_that_refuses_is_a_result() -> None:
    def refuses(program: Program, chip: str) -> list[Figures]:
        raise DoesNotCompile("error: no such type")

    found = compiled(replace(CHIPS[0], compile=refuses), PROGRAM)
    assert found.error == "error: no such type"


def test_a_program_is_recorded_as_the_driver_gets_it(tmp_path: Path) -> None:
    code = "import torch; (torch.ones(3, device='xpu') + 1).cpu()"
    settings = {"XPURT_KERNEL_POLICY": "sycl"}
    programs = record(tmp_path, [(sys.executable, "-c", code)], settings)
    assert any("-cl-std=CL3.0" in each.options for each in programs)
    assert all("__kernel void" in each.source for each in programs)
