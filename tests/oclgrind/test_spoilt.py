"""Spoilt kernels: which changes have an effect, without a simulator."""

import os
from pathlib import Path

import pytest
from changes import CHANGES, changed
from own_process import output
from spoilt import DRIVER, Spoilt, candidates, effects, spoil_and_check, template_of

from xpurt.testing.kernels import recording

needs_driver = pytest.mark.skipif(
    not DRIVER.exists(), reason="the CPU's OpenCL driver is elsewhere"
)
ADD = """
import torch, xpurt
x = torch.arange({size}.0).to("xpu")
y = x + 1
torch.xpu.synchronize()
"""


def spoilt_sums(folder: Path, size: int) -> list[Spoilt]:
    output(ADD.format(size=size), fresh=True, **recording(folder))
    (every,) = candidates(folder, seed=0)
    return every


def of_bound(every: list[Spoilt]) -> Spoilt:
    (found,) = (each for each in every if "x < columns" in each.line)
    return found


def test_dead_code_stays() -> None:
    source = "__kernel void f() {\n#if 0\nbarrier(A);\n#endif\n}"
    assert not list(changed(source, CHANGES[0]))


def test_a_change_of_one_place() -> None:
    source = "barrier(A);\n__kernel void f() {\n  barrier(A);\n  barrier(B);\n}"
    first, second = changed(source, CHANGES[0])
    assert first[:2] == (3, source.replace("  barrier(A)", "  "))
    assert second[0] == 4


@pytest.mark.parametrize(
    ("kernel", "template"),
    [
        ("add_111_ff_f", "add"),
        ("where_2n110_tff_f", "where"),
        ("clamp_111_lSN_l", "clamp"),
        ("amax_reduce_inner_w_1_1_n_fff", "amax_reduce_inner"),
        ("native_layer_norm_backward_2_f", "native_layer_norm_backward"),
    ],
)
def test_a_template(kernel: str, template: str) -> None:
    assert template_of(kernel) == template


@needs_driver
def test_a_bound_that_work_items_are_beyond(tmp_path: Path) -> None:
    every = spoilt_sums(tmp_path, 100)
    bound = of_bound(every)
    assert effects(bound) == {"it writes outside of its memory": 1}
    assert len(bound.launches) == 1
    assert {each.change.what for each in every} >= {
        "an address is one too large",
        "two work-items take the same element",
    }


@needs_driver
def test_a_bound_that_is_met_exactly_is_equivalent(tmp_path: Path) -> None:
    bound = of_bound(spoilt_sums(tmp_path, 128))
    assert not effects(bound)
    assert bound.builds
    assert bound.launches == []


@needs_driver
@pytest.mark.skipif(
    "OCLGRIND" not in os.environ, reason="needs Oclgrind: make test-oclgrind"
)
def test_spoilt_kernels_are_found(tmp_path: Path) -> None:
    output(ADD.format(size=100), fresh=True, **recording(tmp_path))
    assert spoil_and_check(tmp_path, os.environ["OCLGRIND"], 3) == (1, 1)
