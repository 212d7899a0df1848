"""Random programs that run twice, on CPU tensors and on xpu, and must agree exactly.

A pool holds pairs of tensors, many of them views of others. Values are whole numbers
below `MODULUS`, on which every op here is exact in float32: so nothing hides behind a
tolerance, and comparisons and sorts can't tip over. What the CPU refuses, xpu has to
refuse too, and the program goes on.
"""

from collections.abc import Callable
from typing import NamedTuple

import torch

from xpurt.testing.oracle import compare_errors, outcome

MODULUS = 17
LARGEST = 2000  # elements
SHAPES = ((3, 4), (4, 3), (12,), (2, 3, 4), (), (0, 4), (3, 1))
DTYPES = (torch.float32, torch.float32, torch.int64, torch.uint8)

# Changes the tensors of one device, returns a new tensor or a view, or both.
Op = Callable[[torch.Tensor, torch.Tensor], torch.Tensor | None]


class Step(NamedTuple):
    op: str
    first: int
    second: int


class Pair(NamedTuple):
    cpu: torch.Tensor
    xpu: torch.Tensor


class Program:
    """`log` is the program so far: the ops' names with the shapes that they met."""

    def __init__(self) -> None:
        self.pool: list[Pair] = []
        self.log: list[str] = []
        for i, shape in enumerate(SHAPES):
            values = torch.arange(torch.Size(shape).numel()) * 5 % MODULUS
            cpu = values.reshape(shape).to(DTYPES[i % len(DTYPES)])
            self.pool.append(Pair(cpu, cpu.to("xpu")))

    def step(self, step: Step) -> None:
        a = self.pool[step.first % len(self.pool)]
        b = self.pool[step.second % len(self.pool)]
        self.log.append(f"{step.op}({describe(a.cpu)}, {describe(b.cpu)})")
        op, shape = OPS[step.op], a.cpu.shape
        cpu, error = outcome(op, a.cpu, b.cpu)
        xpu, xpu_error = outcome(op, a.xpu, b.xpu)
        if error is not None and xpu_error is None:
            # A kernel's wrong index raises at the next wait.
            xpu, xpu_error = None, outcome(torch.xpu.synchronize)[1]
            assert isinstance(xpu_error, IndexError), self.log
        else:
            compare_errors(error, xpu_error, "xpu")
        if error is not None and a.cpu.shape != shape:
            # Some kernels of the CPU resize `out` before they refuse the operands.
            self.pool = [pair for pair in self.pool if pair.cpu is not a.cpu]
            return
        if cpu is not None and xpu is not None and cpu.numel() <= LARGEST:
            assert xpu.device.type == "xpu"
            assert (xpu.shape, xpu.dtype) == (cpu.shape, cpu.dtype)
            self.pool.append(Pair(cpu, xpu))
            del self.pool[:-10]

    def check(self) -> None:
        """Every live tensor has the CPU's values, strides and number of writes."""
        for cpu, xpu in self.pool:
            assert xpu.storage_offset() == cpu.storage_offset()
            assert cpu.numel() < 2 or xpu.stride() == cpu.stride()
            assert xpu._version == cpu._version
            assert torch.equal(xpu.cpu(), cpu), f"{xpu.cpu()}\nnot\n{cpu}"


def describe(tensor: torch.Tensor) -> str:
    return f"{str(tensor.dtype)[6:]} {list(tensor.shape)} by {list(tensor.stride())}"


def run(steps: list[Step], checks: set[int]) -> None:
    """Runs the steps, and checks after those whose position is in `checks`."""
    program = Program()
    try:
        for i, step in enumerate(steps):
            program.step(step)
            if i in checks:
                program.check()
        program.check()
    except AssertionError as error:
        error.add_note("\n".join(program.log))
        raise


def small(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.remainder(MODULUS)


def matrix(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.float().reshape(-1, tensor.shape[-1] if tensor.dim() else 1)


NEW: dict[str, Op] = {
    "add": lambda a, b: small(a + b),
    "sub": lambda a, b: small(a - b),
    "mul": lambda a, b: small(a * b),
    "maximum": lambda a, b: torch.maximum(a, b),
    "where": lambda a, b: torch.where(a > 3, a, b),
    "relu": lambda a, _: (a.float() - 5).relu(),
    "clamp": lambda a, _: a.clamp(2, 9),
    "abs of neg": lambda a, _: small(a.float().neg().abs()),
    "equal": lambda a, b: (a == b).to(a.dtype),
    "sum": lambda a, _: small(a.sum()),
    "sum of rows": lambda a, _: small(a.sum(-1, keepdim=True)),
    "sum of columns": lambda a, _: small(a.sum(0)),
    "amax": lambda a, _: a.amax(-1),
    "argmax": lambda a, _: a.flatten().argmax(),
    "any": lambda a, _: a.any(0).to(a.dtype),
    "cumsum": lambda a, _: small(a.cumsum(0)),
    "sort": lambda a, _: a.sort(-1).values,
    "mm": lambda a, b: small(matrix(a) @ matrix(b).t()),
    "mm with itself": lambda a, _: small(matrix(a).t() @ matrix(a)),
    "clone": lambda a, _: a.clone(),
    "contiguous": lambda a, _: a.contiguous(),
    "cat": lambda a, b: torch.cat((a, b)),
    "stack": lambda a, b: torch.stack((a, b), -1),
    "flip": lambda a, _: a.flip(-1),
    "roll": lambda a, _: a.roll(1, 0),
    "index": lambda a, b: a[b.flatten()[:3].long().remainder(max(len(a), 1))],
    "masked_select": lambda a, _: a[a > 4],
    "to int64": lambda a, _: a.long(),
    "to float": lambda a, _: a.float(),
    "grown": lambda a, _: grown(a),
    "like": lambda a, _: torch.zeros_like(a).fill_(2),
    "there and back": lambda a, _: a.cpu().to(a.device).clone(),
}
VIEWS: dict[str, Op] = {
    "tail": lambda a, _: a[1:],
    "empty tail": lambda a, _: a[len(a) :],
    "every other": lambda a, _: a[..., ::2],
    "last": lambda a, _: a.select(0, -1),
    "transpose": lambda a, _: a.transpose(0, -1),
    "unsqueeze": lambda a, _: a.unsqueeze(-1) if a.dim() < 4 else None,
    "squeeze": lambda a, _: a.squeeze(),
    "expand": lambda a, _: a.unsqueeze(0).expand(2, *a.shape) if a.dim() < 4 else None,
    "expand_as": lambda a, b: a.expand_as(b),
    "flatten": lambda a, _: a.view(-1),
    "diagonal": lambda a, _: a.diagonal(),
    "unfold": lambda a, _: a.unfold(0, 2, 1) if a.dim() < 4 else None,
    "reshape": lambda a, _: a.reshape(2, -1),
}
CHANGES: dict[str, Op] = {
    "add_": lambda a, b: a.add_(b).remainder_(MODULUS),
    "mul_": lambda a, b: a.mul_(b).remainder_(MODULUS),
    "sub_ itself": lambda a, _: a.sub_(a),
    "neg_": lambda a, _: a.neg_().remainder_(MODULUS),
    "copy_": lambda a, b: a.copy_(b),
    "copy_ from the CPU": lambda a, _: a.copy_(torch.full((), 3.0)),
    "add_ its own row": lambda a, _: a.add_(a[0]).remainder_(MODULUS),
    "shift": lambda a, _: a[1:].copy_(a[:-1]),
    "fill_": lambda a, _: a.fill_(7),
    "zero_": lambda a, _: a.zero_(),
    "fill the first": lambda a, _: a[0].fill_(5),
    "set the last": lambda a, _: set_last(a),
    "masked_fill_": lambda a, b: a.masked_fill_(b > 4, 1),
    "masked write": lambda a, _: masked_write(a),
    "index_fill_": lambda a, _: a.index_fill_(0, torch.tensor([0], device=a.device), 6),
    "index_add_": lambda a, _: a.index_add_(
        0, torch.tensor([0], device=a.device), a[-1:].clone()
    ).remainder_(MODULUS),
    "add out": lambda a, b: torch.add(b, 1, out=a).remainder_(MODULUS),
    "sum out": lambda a, b: torch.sum(b, 0, out=a).remainder_(MODULUS),
    "mm out": lambda a, b: torch.mm(matrix(b), matrix(b).t(), out=a).remainder_(
        MODULUS
    ),
    "cat out": lambda a, b: torch.cat((b.clone(), b.clone()), out=a),
    "abs into a part of itself": lambda a, _: torch.abs(a[:1], out=a[-1:]),
    "foreach": lambda a, b: torch._foreach_minimum_([a, b], 11),
    "set_": lambda a, b: a.set_(b) if a.dtype == b.dtype else None,
}
# They return their operand, or nothing.
OPS: dict[str, Op] = {**NEW, **VIEWS}


def remade(change: Op) -> Op:
    def changed(a: torch.Tensor, b: torch.Tensor) -> None:
        change(a, b)

    return changed


OPS.update((name, remade(change)) for name, change in CHANGES.items())


def set_last(tensor: torch.Tensor) -> None:
    tensor[-1] = 4


def masked_write(tensor: torch.Tensor) -> None:
    tensor[tensor > 4] = 2


def grown(tensor: torch.Tensor) -> torch.Tensor:
    copy = tensor.clone(memory_format=torch.contiguous_format).flatten()
    size = copy.numel()
    copy.resize_(size + 3)[size:].fill_(1)
    return copy
