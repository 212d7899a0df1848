"""Sequences of ops that run twice, on CPU tensors and on xpu, and must agree.

A pool holds pairs of tensors, many of them views of others. A step takes its operands
from the pool by number and its device by `Choices`; values stay small.
"""

import ctypes
from collections.abc import Callable
from typing import NamedTuple

import torch

import xpurt
from auto.choices import Choices
from xpurt import _C


class Pair(NamedTuple):
    cpu: torch.Tensor
    xpu: torch.Tensor


class Step(NamedTuple):
    op: int
    first: int
    second: int
    kind: str
    stream: int
    share: float = 0  # of the CPU, in ops that are split; 0: none is


class Run:
    def __init__(self, choices: Choices, streams: list[torch.Stream]) -> None:
        self.choices = choices
        self.streams = streams
        self.last = streams[0]
        self.pool: list[Pair] = []
        for shape in ((3, 4), (4, 3), (12,), (2, 3, 4)):
            cpu = torch.arange(torch.Size(shape).numel()).reshape(shape) % 7 / 4.0
            self.pool.append(Pair(cpu, cpu.to("xpu")))

    def step(self, step: Step) -> None:
        self.choices.only(step.kind)
        self.split(step.share)
        stream = self.streams[step.stream % len(self.streams)]
        if stream != self.last:
            done = self.last.record_event()
            stream.wait_event(done)
            self.last = stream
        first = self.pool[step.first % len(self.pool)]
        second = self.pool[step.second % len(self.pool)]
        with torch.xpu.stream(stream):
            OPS[step.op % len(OPS)](self, first, second)
        del self.pool[:-10]

    def split(self, share: float) -> None:
        proportions = [
            share if kind == "cpu" else 1 - share for kind in self.choices.kinds
        ]
        _C.testing.set_split_proportions(proportions if share else [], unit=1)

    def check(self) -> None:
        self.split(0)
        with torch.xpu.stream(self.last):
            for pair in self.pool:
                same(pair)

    def add(self, cpu: torch.Tensor, xpu: torch.Tensor) -> None:
        if cpu.dim() == 0:
            cpu, xpu = cpu.unsqueeze(0), xpu.unsqueeze(0)
        if 0 < cpu.numel() < 1000:
            self.pool.append(Pair(cpu, xpu))


def strides(tensor: torch.Tensor) -> list[int]:
    """Those that lead anywhere."""
    sizes = zip(tensor.shape, tensor.stride(), strict=True)
    return [stride for size, stride in sizes if size > 1]


def same(pair: Pair) -> None:
    found = pair.xpu.cpu()
    assert strides(found) == strides(pair.cpu) or not pair.cpu.is_contiguous()
    torch.testing.assert_close(found, pair.cpu, rtol=1e-4, atol=1e-5)


Op = Callable[[Run, Pair, Pair], None]
OPS: list[Op] = []


def op(function: Op) -> Op:
    OPS.append(function)
    return function


def unary(function: Callable[[torch.Tensor], torch.Tensor]) -> None:
    """A new tensor, or a view, from one of the pool."""

    def both(run: Run, a: Pair, _: Pair) -> None:
        run.add(function(a.cpu), function(a.xpu))

    OPS.append(both)


def change(function: Callable[[torch.Tensor], object]) -> None:
    """A random op in place."""

    def both(_run: Run, a: Pair, _b: Pair) -> None:
        function(a.cpu)
        function(a.xpu)

    OPS.append(both)


def overlaps(tensor: torch.Tensor) -> bool:
    return any(
        stride == 0 and size > 1
        for size, stride in zip(tensor.shape, tensor.stride(), strict=True)
    )


# Rows.
unary(lambda t: torch.tanh(t))
unary(lambda t: (t * 0.5).clamp(-2, 2))
unary(lambda t: t.sum(-1) / 8)
unary(lambda t: t.amax(0, keepdim=True))
unary(lambda t: torch.softmax(t, -1))
unary(lambda t: torch.where(t > 0.5, t, -t))
unary(lambda t: t.reshape(-1, t.shape[-1]) @ t.reshape(-1, t.shape[-1]).t() / 8)
unary(lambda t: t.clone())
change(lambda t: t.mul_(0.5))
change(lambda t: t.neg_())
change(lambda t: t.fill_(1.25))
change(lambda t: t.zero_())
# Native.
unary(lambda t: torch.cumsum(t, -1) / 4)
unary(lambda t: torch.flip(t, [0]))
unary(lambda t: torch.sort(t.flatten()).values)
unary(lambda t: torch.cat([t, t])[1:])
change(lambda t: t.copy_(torch.roll(t, 1)))
change(
    lambda t: t.index_fill_(0, torch.zeros(1, dtype=torch.long, device=t.device), 0.75)
)
# Views.
unary(lambda t: t[1:] if t.shape[0] > 2 else t.view_as(t))
unary(lambda t: t[..., ::2])
unary(lambda t: t.t() if t.dim() == 2 else t.view_as(t))
unary(lambda t: t.unsqueeze(0) if t.dim() < 4 else t[0])
unary(lambda t: t.select(0, t.shape[0] - 1) if t.dim() > 1 else t)
unary(lambda t: t.detach())


@op
def add(run: Run, a: Pair, b: Pair) -> None:
    if a.cpu.shape == b.cpu.shape:
        run.add((a.cpu + b.cpu) / 2, (a.xpu + b.xpu) / 2)
    else:
        run.add(a.cpu + b.cpu.mean(), a.xpu + b.xpu.mean())


@op
def add_in_place(_: Run, a: Pair, b: Pair) -> None:
    if a.cpu.shape == b.cpu.shape and not a.cpu.is_set_to(b.cpu):
        # A partial overlap is an error on each device: both operands are read first.
        a.cpu.add_(b.cpu.clone()).mul_(0.5)
        a.xpu.add_(b.xpu.clone()).mul_(0.5)
    else:
        a.cpu.add_(a.cpu).mul_(0.5)
        a.xpu.add_(a.xpu).mul_(0.5)


@op
def into_out(run: Run, a: Pair, b: Pair) -> None:
    cpu, xpu = torch.zeros_like(a.cpu), torch.zeros_like(a.xpu)
    torch.sub(a.cpu, b.cpu.mean(), out=cpu)
    torch.sub(a.xpu, b.xpu.mean(), out=xpu)
    run.add(cpu, xpu)


@op
def out_is_an_operand(_: Run, a: Pair, __: Pair) -> None:
    if a.cpu.is_contiguous() and a.cpu.dim() > 1:
        torch.softmax(a.cpu, -1, out=a.cpu)
        torch.softmax(a.xpu, -1, out=a.xpu)


@op
def copy_over(_: Run, a: Pair, b: Pair) -> None:
    if a.cpu.shape == b.cpu.shape:
        a.cpu.copy_(b.cpu.clone())
        a.xpu.copy_(b.xpu.clone())


@op
def copy_from_cpu(_: Run, a: Pair, __: Pair) -> None:
    values = (torch.arange(a.cpu.numel()) % 5 / 2.0).reshape(a.cpu.shape)
    a.cpu.copy_(values)
    a.xpu.copy_(values)


@op
def copy_to_cpu(_: Run, a: Pair, __: Pair) -> None:
    same(a)


@op
def cast_and_back(run: Run, a: Pair, _: Pair) -> None:
    run.add(a.cpu.half().float(), a.xpu.half().float())


@op
def share(run: Run, a: Pair, _: Pair) -> None:
    torch.xpu.synchronize()
    shared = xpurt.share(a.xpu)
    same(Pair(a.cpu, shared))
    if shared.numel():
        shared.view(-1)[0:1].fill_(0.5) if shared.is_contiguous() else shared.neg_()
        a.cpu.view(-1)[0:1].fill_(0.5) if a.cpu.is_contiguous() else a.cpu.neg_()
    same(a)


@op
def numpy_writes(_: Run, a: Pair, __: Pair) -> None:
    torch.xpu.synchronize()
    array = xpurt.share(a.xpu).numpy()
    array *= 0.5
    a.cpu.mul_(0.5)
    same(a)


@op
def dlpack(_: Run, a: Pair, __: Pair) -> None:
    alias = torch.from_dlpack(a.xpu)
    alias.mul_(0.5)
    a.cpu.mul_(0.5)
    same(Pair(a.cpu, alias))
    same(a)


@op
def read_the_pointer(_: Run, a: Pair, __: Pair) -> None:
    if a.cpu.numel():
        address = a.xpu.data_ptr()
        found = ctypes.cast(address, ctypes.POINTER(ctypes.c_float))[0]
        expected = a.cpu.flatten()[0].item()
        assert abs(found - expected) <= 1e-5 + 1e-4 * abs(expected)


@op
def resize(run: Run, a: Pair, _: Pair) -> None:
    cpu, xpu = a.cpu.clone().contiguous(), a.xpu.clone().contiguous()
    size = cpu.numel()
    cpu.resize_(size + 5)[size:].fill_(0.25)
    xpu.resize_(size + 5)[size:].fill_(0.25)
    run.add(cpu, xpu)


@op
def set_to(run: Run, a: Pair, b: Pair) -> None:
    cpu, xpu = a.cpu.clone(), a.xpu.clone()
    cpu.set_(b.cpu)
    xpu.set_(b.xpu)
    run.add(cpu, xpu)


@op
def lazy_clone(run: Run, a: Pair, _: Pair) -> None:
    # The copy of a view would have the whole storage.
    if a.cpu.is_contiguous() and a.cpu.nbytes == a.cpu.untyped_storage().nbytes():
        run.add(a.cpu.clone(), torch._lazy_clone(a.xpu))


@op
def drop(run: Run, a: Pair, __: Pair) -> None:
    if len(run.pool) > 3:
        del run.pool[next(i for i, each in enumerate(run.pool) if each is a)]


@op
def whole_storage(run: Run, a: Pair, _: Pair) -> None:
    copies = (t.untyped_storage().clone() for t in (a.cpu, a.xpu))
    whole = [torch.empty(0, device=s.device).set_(s) for s in copies]
    run.add(*whole)
