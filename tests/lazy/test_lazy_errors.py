"""Lazy graphs that raise. A process has one lazy backend."""

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
