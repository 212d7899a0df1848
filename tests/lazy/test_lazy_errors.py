"""Lazy graphs that raise. A process has one lazy backend."""

import pytest
import torch
from own_process import output

ERRORS = """
import torch
import xpurt.lazy
xpurt.lazy.init(compile="never")
library = torch.library.Library("mine", "DEF")
library.define("refuse(Tensor x) -> Tensor")

def refuse(x):
    raise ValueError("no such value")

library.impl("refuse", refuse, "XPU")
library.impl("refuse", torch.empty_like, "Meta")
def later():
    return (torch.ones(3).to("lazy") + 1).tolist()

x = torch.ones(3).to("lazy")
y = torch.ops.mine.refuse(x)
for look in (xpurt.lazy.step, y.cpu, later):
    try:
        print(look())
    except Exception as error:
        print(type(error).__name__)
"""


BEFORE_INIT = """
import torch
import xpurt.lazy

def traced():
    with xpurt.lazy.mode():
        torch.ones(3, device="xpu") + 1

for call in (traced, xpurt.lazy.step):
    try:
        call()
    except RuntimeError as error:
        print(error)
"""


def test_what_needs_the_backend_says_so() -> None:
    why = "needs xpu as the backend of lazy tensors: call xpurt.lazy.init() before"
    assert output(BEFORE_INIT).splitlines() == [
        f"xpurt.lazy.mode() {why}",
        f"xpurt.lazy.step() {why}",
    ]


def test_an_exception_of_a_kernel_in_python_is_raised_at_the_step() -> None:
    assert output(ERRORS).splitlines() == [
        "ValueError",
        "RuntimeError",
        "[2.0, 2.0, 2.0]",
    ]


WITHOUT_CORE = """
import sys, torch
for name in {missing}:
    delattr(torch._C, name)
    sys.modules.pop("torch._C." + name, None)

class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == {library!r}:
            raise ImportError("undefined symbol: GetTSBackendImpl")

sys.meta_path.insert(0, Finder())
import xpurt.lazy
try:
    xpurt.lazy.init()
except RuntimeError as error:
    print(error)
print((torch.ones(2, device="xpu") + 1).tolist())
"""


@pytest.mark.parametrize(
    ("missing", "library", "lacks"),
    [
        (["_lazy_ts_backend"], "", "torch._C._lazy_ts_backend"),
        (
            ["_lazy", "_lazy_ts_backend"],
            "",
            "torch._C._lazy and torch._C._lazy_ts_backend",
        ),
        (
            [],
            "xpurt._lazy",
            "what xpurt._lazy needs (undefined symbol: GetTSBackendImpl)",
        ),
    ],
)
def test_a_pytorch_without_the_lazy_core_is_named(
    missing: list[str], library: str, lacks: str
) -> None:
    found = output(WITHOUT_CORE.format(missing=missing, library=library)).splitlines()
    assert found == [
        "xpurt.lazy.init() needs PyTorch's lazy core and its TorchScript backend, and this "
        f"PyTorch {torch.__version__} lacks {lacks}: install a build that has them, or use "
        "torch.compile.",
        "[2.0, 2.0]",
    ]
