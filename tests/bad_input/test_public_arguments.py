"""Every public function, called with invalid arguments.

Each call raises the standard exception for it, or one of xpurt's. Its text gives what
was requested or found, and a remedy. No call passes, and none raises an error from the
inside: "'int' object has no attribute 'device'".
"""

import inspect
import re
from collections.abc import Callable
from typing import Any

import pytest
import torch

import xpurt
import xpurt.testing
from xpurt import testing

# Messages of Python, pybind and PyTorch for arguments that were not checked.
FROM_THE_INSIDE = re.compile(
    r"has no attribute|object is not|not supported between|index out of range|"
    r"incompatible function arguments|can only concatenate|unsupported operand|"
    r"invalid literal|device string|invalid combination|must match dimensionality"
)


class Array:
    """An object of another SYCL library; `parts` replace those of a good one."""

    def __init__(self, parts: Any) -> None:
        self.kept = torch.ones(3, device="xpu")
        good = {
            "version": 1,
            "data": (self.kept.data_ptr(), False),
            "shape": (3,),
            "strides": None,
            "typestr": "<f4",
            "syclobj": None,
        }
        if isinstance(parts, dict):
            parts = {k: v for k, v in (good | parts).items() if v is not Array}
        self.__sycl_usm_array_interface__ = parts


def enter(manager: Callable[..., Any], *args: Any, **kwargs: Any) -> None:
    with manager(*args, **kwargs):
        pass


def linear(device: str = "cpu") -> torch.nn.Module:
    return torch.nn.Linear(2, 2, device=device)


def cpu() -> torch.Tensor:
    return torch.ones(3)


def on_xpu() -> torch.Tensor:
    return torch.ones(3, device="xpu")


WRONG = [3, 1.5, None, object(), b"CPU", ["CPU"], True]
NO_DEVICES = [3.5, True, object(), ["xpu"], b"xpu", "nonsense", "", "cuda"]
OTHER_DEVICES = [torch.device(it) for it in ("cpu", "cuda:1", "xpu:99")]
NO_FLAGS = ["no", "", None, 0.5, 1, [], object()]
PARTS: list[Any] = [
    3,
    None,
    {"strides": ()},
    {"strides": (1, 1)},
    {"strides": ("a",)},
    {"strides": (-1,)},
    {"strides": 4},
    {"shape": 3},
    {"shape": (-1,)},
    {"shape": ("a",)},
    {"shape": Array},
    {"shape": (1 << 40,)},
    {"data": 3},
    {"data": ()},
    {"data": ("a", False)},
    {"data": (-1, False)},
    {"data": (0, False)},
    {"data": Array},
    {"typestr": 3},
    {"typestr": ""},
    {"typestr": ">f4"},
    {"typestr": "<f3"},
    {"offset": "a"},
    {"syclobj": 3},
]

# By function: a call with each of some values.
CALLS: dict[str, list[tuple[Callable[[Any], Any], list[Any]]]] = {
    "autocast": [
        (xpurt.autocast, [*filter(None, WRONG), "cuda", "cpuu", ""]),
        (lambda it: xpurt.autocast("cpu", it), [*WRONG[:2], "bfloat16", torch.int16]),
        (lambda it: xpurt.autocast("cpu", layout=it), [*WRONG, torch.sparse_csr]),
        (lambda it: xpurt.autocast("xpu")(it), [3, None, "f"]),
    ],
    "calibrate": [(xpurt.calibrate, [3, None, "cpu"])],
    "explain": [(xpurt.explain, [3, None, "x"])],
    "from_usm": [
        (xpurt.from_usm, [3, None, object(), cpu()]),
        (lambda parts: xpurt.from_usm(Array(parts)), PARTS),
    ],
    "kernel_policy": [
        (lambda it: enter(xpurt.kernel_policy, it), [*WRONG, "sycll", "", "SYCL"])
    ],
    "set_kernel_policy": [(xpurt.set_kernel_policy, [*WRONG, "sycll", "", "SYCL"])],
    "cpu_kernels": [
        (lambda it: enter(xpurt.cpu_kernels, it), [*WRONG, "sycll", "", "SYCL"])
    ],
    "set_cpu_kernels": [(xpurt.set_cpu_kernels, [*WRONG, "sycll", "", "SYCL"])],
    "lazy_copies": [(lambda it: enter(xpurt.lazy_copies, it), NO_FLAGS)],
    "load_gguf": [
        (xpurt.load_gguf, [*WRONG, "", "no such file.gguf", __file__]),
        (lambda it: xpurt.load_gguf(__file__, it), [*WRONG, "float32", torch.int8]),
        (lambda it: xpurt.load_gguf(__file__, device=it), NO_DEVICES),
        (lambda it: xpurt.load_gguf(__file__, progress=it), [3, "yes"]),
    ],
    "op_report": [(lambda it: xpurt.op_report(reset=it), NO_FLAGS)],
    "quantize": [
        (lambda it: xpurt.quantize(it, "dynamic"), [3, None, cpu(), "model"]),
        (
            lambda it: xpurt.quantize(linear().eval(), it),
            [*WRONG, "int8", "", "STATIC"],
        ),
        (
            lambda it: xpurt.quantize(linear().eval(), "static", calibration=it),
            [3, None, [], cpu(), "data"],
        ),
    ],
    "place": [
        (lambda it: xpurt.place(it, {"": 0}), [3, None, cpu(), "model"]),
        (lambda it: xpurt.place(linear(), it), [3, None, "xpu", ["a"], [("a", 0)]]),
        (lambda it: xpurt.place(linear(), {it: 0}), [3, None, "weight", "head", " "]),
        (
            lambda it: xpurt.place(torch.nn.Sequential(linear()), {it: 0}),
            ["1", "0.weight", "00"],
        ),
        (
            lambda it: xpurt.place(linear(), {"": it}),
            [None, 1.5, True, 99, -1, "cuda", "xpu:99", "", [0], *OTHER_DEVICES],
        ),
    ],
    "optimize": [
        (xpurt.optimize, [*WRONG, "model", torch.nn.Linear]),
        (
            lambda it: xpurt.optimize(torch.nn.Linear(2, 2).eval(), dtype=it),
            ["bfloat16", torch.int8, 16, torch.float64],
        ),
        (
            lambda it: xpurt.optimize(torch.nn.Linear(2, 2).eval(), sample_input=it),
            [3, "x", torch.ones(3), (), {"y": torch.ones(2)}],
        ),
    ],
    "prefer": [(lambda it: enter(xpurt.prefer, it), [*WRONG, "gpuu", "", "cuda"])],
    "prototype_device": [
        (xpurt.prototype_device, [*WRONG, "", "cuda", "ipu2", "Ipu"]),
        (
            lambda it: xpurt.prototype_device("ipu", memory=it),
            [3, None, "", "disk", "cpu:9", b"cpu"],
        ),
        (
            lambda it: xpurt.prototype_device("ipu", devices=it),
            [0, 65, -1, 1.5, "x", None, True],
        ),
    ],
    "register_runtime": [
        (lambda it: xpurt.register_runtime(it, torch), [*WRONG, "ipuu", ""]),
        (lambda it: xpurt.register_runtime("ipu", it), [3, None, object(), "torch"]),
    ],
    "set_xpu_mapping": [
        (xpurt.set_xpu_mapping, [*WRONG, "", "CPUU", "AUTO:", "CPU:GPU", "AUTO:-"]),
        (
            lambda it: xpurt.set_xpu_mapping("AUTO", devices=it),
            [3, 1.5, True, [3], [None], "", [], "cuda:9", "opencl:cpu:99", b"cpu"],
        ),
        (
            lambda it: xpurt.set_xpu_mapping("AUTO", partition=it),
            [0, -1, 1.5, True, [], ["a"], [0], "half", "", {}, 1 << 40, object()],
        ),
    ],
    "xpu_mapping": [
        (lambda it: enter(xpurt.xpu_mapping, it), [*WRONG, "", "CPUU"]),
        (lambda it: enter(xpurt.xpu_mapping, "AUTO", partition=it), [0, 1.5, "half"]),
    ],
    "share": [
        (xpurt.share, [3, None, "x", [cpu()], {"a": cpu()}, cpu().to("meta")]),
        (xpurt.share, [torch.eye(2).to_sparse(), linear("meta")]),
        (lambda it: xpurt.share(cpu(), it), [*NO_DEVICES, "cpu", "xpu:99", 99]),
        (lambda it: xpurt.share(on_xpu(), it), [*NO_DEVICES, "xpu"]),
        (lambda it: xpurt.share(linear(), it), [*NO_DEVICES, "cpu", "xpu:99"]),
        (lambda it: xpurt.share(linear("xpu"), it), [*NO_DEVICES, "xpu"]),
        (lambda it: xpurt.share(torch.nn.ReLU(), it), NO_DEVICES),
    ],
    "timeline": [
        (
            lambda it: enter(xpurt.timeline, it),
            [3, True, ["a"], b"a.png", "a.nonsense", "", "/no/such/folder/a.json"],
        )
    ],
    "where": [(xpurt.where, [3, None, "x", cpu(), [1]])],
    "testing.agree": [
        (testing.agree, [3, None, "add"]),
        (lambda it: testing.agree(torch.neg, cpu(), device=it), [3, None, "nonsense"]),
        (lambda it: testing.agree(torch.neg, cpu(), grads=it), NO_FLAGS),
        (lambda it: testing.agree(torch.neg, cpu(), strides=it), NO_FLAGS),
        (lambda it: testing.agree(torch.neg, cpu(), rtol=it, atol=1), ["x", True, []]),
    ],
    "testing.copied": [
        (lambda it: testing.copied(cpu(), it), [3, 3.5, None, "nonsense"])
    ],
    "testing.compare_errors": [
        (lambda it: testing.compare_errors(it, None, "xpu"), [3, "error", ValueError])
    ],
    "testing.Comparison": [
        (lambda it: testing.Comparison(rtol=it), [3, 0.1]),
        (lambda it: testing.Comparison(it, 1), ["x", True]),
        (lambda it: testing.Comparison(values=it), NO_FLAGS),
    ],
    "testing.check_kernels": [
        (lambda it: testing.check_kernels(it, library=__file__), [3, None, "x"]),
    ],
    "testing.outcome": [(testing.outcome, [3, None, "x"])],
    "testing.virtual_gpu": [
        (lambda it: testing.virtual_gpu(strict=it), NO_FLAGS),
        (lambda it: testing.virtual_gpu(svm=it), NO_FLAGS),
        (lambda it: testing.virtual_gpu(coherent=it, svm=it), [True]),
        (lambda it: testing.virtual_gpu(delay_us=it), ["x", 1.5, None, -1, True]),
        (lambda it: testing.virtual_gpu(memory_bytes=it), ["x", 1.5, 0, -1, True]),
        (lambda it: testing.virtual_gpu(fp16=it), NO_FLAGS),
        (lambda it: testing.virtual_gpu(limits=it), ["x", "usm=2", 1.5, None, True]),
    ],
    "testing.fail_virtual_gpu": [(testing.fail_virtual_gpu, NO_FLAGS)],
    "testing.delay_virtual_gpu": [
        (testing.delay_virtual_gpu, ["x", 1.5, None, -1, True])
    ],
}
# Functions without arguments, exception types, and types of results.
WITHOUT = {
    "MappingError",
    "PrototypeDevice",
    "XpurtError",
    "get_cpu_kernels",
    "get_kernel_policy",
    "get_xpu_mapping",
    "physical_devices",
    "testing.Disagreement",
    "testing.KernelCheck",
    "testing.KernelFault",
    "unusable_devices",
}


def rows() -> list[Any]:
    found = []
    for name, calls in CALLS.items():
        for number, (call, values) in enumerate(calls):
            for value in values:
                # An address is another one in each process, and so would be the name.
                shown = re.sub(r" at 0x\w+", "", repr(value))
                shown = re.sub(r"\W+", "_", shown)[:24]
                found.append(pytest.param(call, value, id=f"{name}-{number}-{shown}"))
    return found


def test_every_public_function_is_here() -> None:
    public = set(xpurt.__all__) | {f"testing.{name}" for name in testing.__all__}
    assert public == set(CALLS) | WITHOUT
    for name in WITHOUT:
        found = getattr(testing, name.removeprefix("testing."), None)
        found = found or getattr(xpurt, name)
        if inspect.isfunction(found):
            assert not inspect.signature(found).parameters


@pytest.fixture(autouse=True)
def auto() -> Any:
    with xpurt.xpu_mapping("AUTO"):
        yield


@pytest.mark.parametrize(("call", "value"), rows())
def test_it_says_what_was_requested_and_found(
    call: Callable[[Any], Any], value: Any
) -> None:
    kinds = (TypeError, ValueError, xpurt.XpurtError, FileNotFoundError)
    with pytest.raises(kinds) as caught:
        call(value)
    text = str(caught.value)
    assert not FROM_THE_INSIDE.search(text), text
    assert len(text) > 30, text
