"""Lazy programs in several threads, and graphs that raise. A process has one lazy backend."""

from own_process import output

THREADS = """
import threading, torch
import xpurt.lazy
xpurt.lazy.init(compile="never")
errors, sums = [], {}

def work(number):
    try:
        x = torch.full((4, 4), float(number), device="lazy")
        w = x.clone()
        for _ in range(100):
            w = torch.tanh(w * 0.5 + x) @ x * 0.1
            xpurt.lazy.step()
        sums.setdefault(number, set()).add(w.sum().item())
    except Exception as error:
        errors.append(str(error))

for _ in range(3):
    threads = [threading.Thread(target=work, args=(each,)) for each in (1, 2)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
print(errors, [len(sums[each]) for each in (1, 2)])
"""


def test_two_threads_trace_and_step_at_once() -> None:
    assert output(THREADS) == "[] [1, 1]"


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


def test_an_exception_of_a_kernel_in_python_is_raised_at_the_step() -> None:
    assert output(ERRORS).splitlines() == [
        "ValueError",
        "RuntimeError",
        "[2.0, 2.0, 2.0]",
    ]
