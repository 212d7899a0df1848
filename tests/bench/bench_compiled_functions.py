"""Functions in compiled programs: native code and kernels, nanoseconds per element.

    DPCPP_CPU_NUM_CUS=1 OMP_NUM_THREADS=1 python tests/bench/bench_compiled_functions.py

Each program evaluates one function four times in a row on 2**20 elements of float32.
Prints processor time of one call, the least of seven rounds that alternate. The table
FUNCTION_NS of xpurt/compiler/form_estimate.py has these numbers, rounded.
"""

import time
from collections.abc import Callable

import torch
from torch import Tensor

import xpurt
from xpurt.compiler.form_estimate import FUNCTION_NS

ELEMENTS = 1 << 20
IN_A_ROW = 4
ROUNDS = 7
FORMS = ("native", "sycl")


def program(name: str) -> Callable[[Tensor], Tensor]:
    """A program with code of its own, since Dynamo keeps one graph per code."""
    call = "torch.pow(x, 2.3)" if name == "pow" else f"torch.{name}(x)"
    made: dict[str, Callable[[Tensor], Tensor]] = {}
    lines = [f"    x = {call} * 0.5 + 0.1"] * IN_A_ROW
    exec("\n".join(["def program(x):", *lines, "    return x"]), {"torch": torch}, made)
    return made["program"]


def compiled(name: str, form: str, x: Tensor) -> Callable[[Tensor], Tensor]:
    with xpurt.kernel_policy(form):
        made = torch.compile(program(name), dynamic=False)
        made(x)
        torch.xpu.synchronize()
    return made


def spent(call: Callable[[Tensor], Tensor], x: Tensor) -> float:
    begin = time.process_time()
    call(x)
    torch.xpu.synchronize()
    return time.process_time() - begin


def main() -> None:
    xpurt.set_xpu_mapping("CPU")
    x = torch.rand(ELEMENTS, device="xpu")
    print(f"{'':10}{'native':>10}{'sycl':>10}")
    for name in sorted(FUNCTION_NS):
        calls = [compiled(name, form, x) for form in FORMS]
        rounds = [[spent(call, x) for call in calls] for _ in range(ROUNDS)]
        times = zip(*rounds, strict=True)
        least = [min(each) * 1e9 / ELEMENTS / IN_A_ROW for each in times]
        print(f"{name:10}" + "".join(f"{each:10.2f}" for each in least), flush=True)


if __name__ == "__main__":
    main()
