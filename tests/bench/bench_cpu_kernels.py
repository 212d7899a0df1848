"""What a row costs on CPU tensors, over PyTorch's kernel: the table of
docs/measured/cpu_kernels.md.

Processor time of one thread on one core; both forms alternate in one process, and the
least of several rounds counts. Run it from the root, with the names of ops or without:
taskset -c 0 python tests/bench/bench_cpu_kernels.py [OP ...]
"""

import os
import sys
import time
from collections.abc import Callable

os.environ.setdefault("XPURT_VIRTUAL_GPU", "off")
os.environ.setdefault("XPURT_MAPPING", "CPU")

import torch

import xpurt

ROUNDS = 5
LEAST_S = 0.02  # of one measurement
Call = Callable[[], object]

F32, BF16, F64 = torch.float32, torch.bfloat16, torch.float64
SHORT = {F32: "float32", BF16: "bfloat16", F64: "float64"}


def cases() -> dict[str, dict[str, Call]]:
    """Calls by op and by example."""
    made: dict[str, dict[str, Call]] = {}

    def add(op: str, example: str, call: Call) -> None:
        made.setdefault(op, {})[example] = call

    def rows(dtype: torch.dtype) -> torch.Tensor:
        return torch.randn(1024, 1024).to(dtype)

    for name in ("var", "std", "var_mean", "std_mean"):
        for dtype in (F32, BF16):
            for dim in (None, 0, 1):
                x, op = rows(dtype), getattr(torch, name)
                add(
                    name,
                    f"1024x1024 {SHORT[dtype]}, dim={dim}",
                    lambda x=x, op=op, dim=dim: op(x, dim=dim),
                )
    for name in ("cumsum", "cumprod", "logcumsumexp"):
        for dtype in (F32, BF16):
            for dim in (0, 1):
                x, op = rows(dtype), getattr(torch, name)
                add(
                    name,
                    f"1024x1024 {SHORT[dtype]}, dim={dim}",
                    lambda x=x, op=op, dim=dim: op(x, dim=dim),
                )
    functions = (
        "tanh sigmoid exp log log1p expm1 sin cos tan erf erfc sinh cosh asinh acosh "
        "atanh asin acos atan rsqrt lgamma digamma erfinv exp2 log2 log10 sinc relu abs"
    )
    for name in functions.split():
        for dtype in (F32, BF16, F64):
            x, op = torch.rand(1024, 1024).to(dtype), getattr(torch, name)
            add(name, f"1024x1024 {SHORT[dtype]}", lambda x=x, op=op: op(x))
    for name in "gelu silu mish softplus elu hardswish".split():
        for dtype in (F32, BF16):
            x, op = rows(dtype), getattr(torch.nn.functional, name)
            add(name, f"1024x1024 {SHORT[dtype]}", lambda x=x, op=op: op(x))
    for exponent in (2.0, 0.5, 2.5):
        for dtype in (F32, BF16):
            x = rows(dtype).abs()
            add(
                "pow",
                f"1024x1024 {SHORT[dtype]}, {exponent}",
                lambda x=x, e=exponent: x.pow(e),
            )
    for dtype in (F32, BF16):
        x, y = rows(dtype).abs(), rows(dtype)
        add("pow", f"1024x1024 {SHORT[dtype]}, tensors", lambda x=x, y=y: x.pow(y))
        for name in "add mul div maximum atan2 hypot logaddexp fmod remainder".split():
            op = getattr(torch, name)
            add(name, f"1024x1024 {SHORT[dtype]}", lambda x=x, y=y, op=op: op(x, y))
        for name in "sum mean amax argmax prod".split():
            for dim in (0, 1):
                op = getattr(torch, name)
                add(
                    name,
                    f"1024x1024 {SHORT[dtype]}, dim={dim}",
                    lambda x=x, op=op, dim=dim: op(x, dim=dim),
                )
        for n in (256, 1024):
            a, b, c = (torch.randn(n, n).to(dtype) for _ in range(3))
            size = f"{n}x{n} {SHORT[dtype]}"
            add("mm", size, lambda a=a, b=b: a @ b)
            add("addmm", size, lambda a=a, b=b, c=c: torch.addmm(c, a, b))
        a, b = (torch.randn(16, 128, 128).to(dtype) for _ in range(2))
        add("bmm", f"16x128x128 {SHORT[dtype]}", lambda a=a, b=b: torch.bmm(a, b))
        add("baddbmm", f"16x128x128 {SHORT[dtype]}", lambda a=a, b=b: a.baddbmm(a, b))
        add("softmax", f"1024x1024 {SHORT[dtype]}", lambda x=y: x.softmax(1))
        add("sort", f"1024x1024 {SHORT[dtype]}", lambda x=y: x.sort(1))
        add("topk", f"1024x1024 {SHORT[dtype]}", lambda x=y: x.topk(8))
    return made


def seconds(call: Call) -> float:
    """Processor time of one call."""
    calls, begin = 0, time.process_time()
    while (spent := time.process_time() - begin) < LEAST_S:
        call()
        calls += 1
    return spent / calls


def compared(call: Call) -> tuple[float, float, set[str]]:
    """The least times by PyTorch's kernel and by the row, and the tiers of the row."""
    least = {"native": float("inf"), "sycl": float("inf")}
    for _ in range(ROUNDS):
        for mode in least:
            xpurt.set_cpu_kernels(mode)
            call()
            least[mode] = min(least[mode], seconds(call))
    xpurt.op_report(reset=True)
    call()
    ran = {row.tier for row in xpurt.op_report().rows if row.device == "cpu"}
    return least["native"], least["sycl"], ran


def main() -> None:
    torch.set_num_threads(1)
    wanted = sys.argv[1:]
    print("| op | example | PyTorch, us | xpurt, us | ratio | tier |")
    print("| --- | --- | ---: | ---: | ---: | --- |")
    for op, examples in cases().items():
        if wanted and op not in wanted:
            continue
        for example, call in examples.items():
            stock, ours, ran = compared(call)
            print(
                f"| `{op}` | {example} | {stock * 1e6:,.0f} | {ours * 1e6:,.0f} | "
                f"{ours / stock:.2f} | {', '.join(sorted(ran)) or 'PyTorch'} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
