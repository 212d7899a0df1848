"""PyTorch's own tests of Inductor, as a class of tests for one device.

The suite "static" has the tests of `CommonTemplate` in inductor/test_torchinductor.py,
copied for a device as that file does it for CUDA and MPS. "dynamic" has them with sizes
that change, as in test_torchinductor_dynamic_shapes.py. "ops" has a test per op of
PyTorch's database and dtype, as in test_torchinductor_opinfo.py.
"""

import sys
import unittest
from pathlib import Path
from typing import Any

import torch
from pytorch_sources import load
from torch.testing._internal import common_device_type, common_methods_invocations

SUITES = {
    "static": "inductor.test_torchinductor",
    "dynamic": "inductor.test_torchinductor_dynamic_shapes",
    "ops": "inductor.test_torchinductor_opinfo",
}


def test_case(folder: Path, suite: str, device: str, *, first_sample: bool) -> Any:
    """PyTorch's tests for `device`, "cpu" or "xpu", as a class.

    folder: `test` of PyTorch's sources. first_sample: of the suite "ops"; the first of
    PyTorch's samples of each op is run alone.
    """
    sys.path.insert(0, str(folder))
    static = load(SUITES["static"])  # the others import it
    if suite == "ops":
        _run_what_is_listed()
    tests = load(SUITES[suite])
    for each in (static, tests):
        each.GPU_TYPE = "xpu"
    if suite == "ops":
        if first_sample:
            tests.inductor_one_sample[device] = _every_op()
        return getattr(tests, f"TestInductorOpInfo{device.upper()}")
    body = {
        "common": static.check_model if device == "cpu" else static.check_model_gpu,
        "device": device,
    }
    cases = type(f"Tests_{device}", (static.TestCase,), body)
    if suite == "dynamic":
        template, failures = tests.DynamicShapesCommonTemplate, tests.test_failures
        tests.copy_tests(template, cases, device, failures)
    else:
        static.copy_tests(static.CommonTemplate, cases, device)
    return cases


def methods(cases: Any, device: str) -> dict[str, str]:
    """The names of the methods of a class of tests, by their names on every device."""
    found = unittest.TestLoader().getTestCaseNames(cases)
    return {"".join(name.rpartition(f"_{device}")[::2]): name for name in found}


def _run_what_is_listed() -> None:
    """Tests that PyTorch expects to fail are run as any other: its list for xpu is that
    of Intel's GPUs, and it names ops that a newer PyTorch lacks."""
    for module in (common_device_type, common_methods_invocations):
        vars(module)["skipOps"] = lambda *lists: lambda test: test


def _every_op() -> dict[str, frozenset[torch.dtype]]:
    """All dtypes, by the names that the tests have for the ops."""
    dtypes = frozenset(
        each for each in vars(torch).values() if isinstance(each, torch.dtype)
    )
    return {
        ".".join(filter(None, (op.name, op.variant_test_name))): dtypes
        for op in common_methods_invocations.op_db
    }
