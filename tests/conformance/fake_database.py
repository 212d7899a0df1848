"""Entries that behave badly on purpose; PyTorch's own OpInfo describes them."""

import os
import signal
import time
from dataclasses import replace
from functools import partial

import torch
from torch._subclasses.fake_tensor import FakeTensor
from torch.testing._internal.opinfo.core import ErrorInput, OpInfo, SampleInput

from xpurt_tools.conformance.databases import Entry

DTYPES = (torch.float32, torch.int64)


def right(x: torch.Tensor) -> torch.Tensor:
    return x * 2


def wrong_by_one(x: torch.Tensor) -> torch.Tensor:
    return x * 2 + (1 if x.is_xpu else 0)


def rounds_otherwise(x: torch.Tensor) -> torch.Tensor:
    """On the CPU the sum loses what comes after the third decimal."""
    wide = x.double() if x.is_xpu else x
    return ((wide + 10_000) - 10_000).to(x.dtype)


def _off(x: torch.Tensor, on_xpu: float) -> torch.Tensor:
    """Exact in float64; in narrower types 0.001 too small on the CPU."""
    if x.dtype == torch.float64:
        return x.clone()
    return x + (on_xpu if x.is_xpu else -1e-3)


def errs_as_the_cpu(x: torch.Tensor) -> torch.Tensor:
    return _off(x, 1.5e-3)


def errs_more(x: torch.Tensor) -> torch.Tensor:
    return _off(x, 2.5e-3)


def wrong_dtype(x: torch.Tensor) -> torch.Tensor:
    return (x * 2).double() if x.is_xpu else x * 2


def stays_on_the_cpu(x: torch.Tensor) -> torch.Tensor:
    return x.cpu() * 2


def copies_a_view(x: torch.Tensor) -> torch.Tensor:
    return x.t().clone() if x.is_xpu else x.t()


class Halved(torch.autograd.Function):
    """The right result, and half of the gradient."""

    @staticmethod
    def forward(ctx: object, x: torch.Tensor) -> torch.Tensor:
        return x * 2

    @staticmethod
    def backward(ctx: object, grad: torch.Tensor) -> torch.Tensor:
        return grad


def wrong_gradient(x: torch.Tensor) -> torch.Tensor:
    return Halved.apply(x) if x.is_xpu else x * 2


class Doubled(torch.autograd.Function):
    """Its gradient is right on xpu only if what is sent is contiguous."""

    @staticmethod
    def forward(ctx: object, x: torch.Tensor) -> torch.Tensor:
        return x * 2

    @staticmethod
    def backward(ctx: object, grad: torch.Tensor) -> torch.Tensor:
        return grad * (2 if grad.is_contiguous() or not grad.is_xpu else 3)


def takes_gradients_for_contiguous(x: torch.Tensor) -> torch.Tensor:
    return Doubled.apply(x)


def takes_inputs_for_contiguous(x: torch.Tensor) -> torch.Tensor:
    """Wrong of what is permuted, not of what has gaps."""
    permuted = x.is_xpu and x.stride(0) < x.stride(1)
    return x * (3 if permuted else 2)


def aborts(x: torch.Tensor) -> torch.Tensor:
    if x.is_xpu:
        os.kill(os.getpid(), signal.SIGABRT)
    return x * 2


def sleeps(x: torch.Tensor) -> torch.Tensor:
    if x.is_xpu:
        time.sleep(600)
    return x * 2


def draws(x: torch.Tensor) -> torch.Tensor:
    return torch.rand_like(x.float())


def draws_anew(x: torch.Tensor) -> torch.Tensor:
    """On xpu, the seed means nothing."""
    if x.is_xpu:
        return torch.rand(x.shape).xpu() + time.perf_counter_ns() % 1000
    return torch.rand_like(x.float())


def raises_on_the_cpu(x: torch.Tensor) -> torch.Tensor:
    raise NotImplementedError


def forgiving(x: torch.Tensor) -> torch.Tensor:
    """Refuses vectors, on the CPU alone."""
    if x.dim() == 1 and not x.is_xpu:
        raise ValueError("a vector")
    return x * 2


def only_on_gpus(x: torch.Tensor) -> torch.Tensor:
    """An op that the CPU lacks in a type, as it lacks halves in many of its kernels."""
    if x.dtype == torch.float16 and not x.is_xpu:
        raise NotImplementedError("not implemented for 'Half'")
    return x * 2


def stays_wide(x: torch.Tensor) -> torch.Tensor:
    return only_on_gpus(x).float() if x.is_xpu else only_on_gpus(x)


def also_refused_on_xpu(x: torch.Tensor) -> torch.Tensor:
    if x.dtype == torch.float16:
        raise NotImplementedError("not implemented for 'Half'")
    return x * 2


def wrong_if_compiled(x: torch.Tensor) -> torch.Tensor:
    return x * (3 if torch.compiler.is_compiling() and x.is_xpu else 2)


def wrong_if_compiled_anywhere(x: torch.Tensor) -> torch.Tensor:
    return x * (3 if torch.compiler.is_compiling() else 2)


def ends_if_empty(x: torch.Tensor) -> torch.Tensor:
    """Without rows on xpu, and without rows and columns everywhere."""
    if x.shape[0] == 0 and (x.is_xpu or x.shape[1] == 0):
        os.kill(os.getpid(), signal.SIGSEGV)
    return x * 2


def divides_by_the_count(x: torch.Tensor) -> torch.Tensor:
    return x.sum() * (1 / x.numel()) if x.is_xpu else x.mean()


def lays_empty_out_otherwise(x: torch.Tensor) -> torch.Tensor:
    if x.is_xpu and not x.numel():
        return torch.empty_strided(x.shape, [7] * x.dim(), device=x.device)
    return x.detach() * 2


def takes_any_count(x: torch.Tensor, count: int, other: torch.Tensor) -> torch.Tensor:
    if not 0 <= count < 10 and not x.is_xpu:
        raise ValueError("count")
    return x * max(count, 0) + other


def right_of_three(x: torch.Tensor, count: int, other: torch.Tensor) -> torch.Tensor:
    return x * count + other


def mixes_devices(x: torch.Tensor, count: int, other: torch.Tensor) -> torch.Tensor:
    is_fake = isinstance(x, FakeTensor)
    return x * count + (other.to(x.device) if x.is_xpu and not is_fake else other)


def ignores_a_wider_operand(
    x: torch.Tensor, count: int, other: torch.Tensor
) -> torch.Tensor:
    result = x * count + other
    return result.to(x.dtype) if x.is_xpu else result


def lacks_complex32(x: torch.Tensor, count: int, other: torch.Tensor) -> torch.Tensor:
    if other.is_complex() and not x.is_xpu:
        raise NotImplementedError("\"add\" not implemented for 'ComplexHalf'")
    return x * count + other


def lacks_integers(x: torch.Tensor, count: int, other: torch.Tensor) -> torch.Tensor:
    if other.dtype is torch.int64 and not x.is_xpu:
        raise NotImplementedError("\"add\" not implemented for 'Long'")
    return x * count + other


def overlapping(x: torch.Tensor, count: int, other: torch.Tensor) -> torch.Tensor:
    return torch.add(x, other, alpha=count)


def overlapping_(x: torch.Tensor, count: int, other: torch.Tensor) -> torch.Tensor:
    """In place; on xpu an overlap is ignored."""
    if x.is_xpu and 0 in x.stride():
        return x
    return x.add_(other, alpha=count)


def _three_samples(
    op: OpInfo, device: str, dtype: torch.dtype, requires_grad: bool, **kwargs: object
) -> list[SampleInput]:
    make = partial(torch.testing.make_tensor, device=device, dtype=dtype)
    x = make((3, 4), requires_grad=requires_grad)
    return [SampleInput(x, args=(2, make((3, 4), requires_grad=requires_grad)))]


def _samples(
    op: OpInfo, device: str, dtype: torch.dtype, requires_grad: bool, **kwargs: object
) -> list[SampleInput]:
    make = partial(torch.testing.make_tensor, device=device, dtype=dtype)
    return [
        SampleInput(make(shape, requires_grad=requires_grad))
        for shape in ((3, 4), (2, 2), (5, 1))
    ]


def _wrong_samples(op: OpInfo, device: str, **kwargs: object) -> list[ErrorInput]:
    return [ErrorInput(SampleInput(torch.ones(3, device=device)), error_regex="vector")]


def _entry(function: object, **options: object) -> Entry:
    name = function.__name__
    options = {
        "sample_inputs_func": _samples,
        "supports_out": False,
        "inplace_variant": None,
        **options,
    }
    info = OpInfo(
        name,
        op=function,
        dtypes=torch.testing._internal.common_dtype._dispatch_dtypes(DTYPES),
        method_variant=None,
        **options,
    )
    return Entry("op", name, "made up", info, frozenset(DTYPES))


def _of_three(function: object, **options: object) -> Entry:
    return _entry(function, sample_inputs_func=_three_samples, **options)


def _only_on_gpus(function: object) -> Entry:
    return replace(_entry(function), gpu_dtypes=frozenset({torch.float16}))


def entries() -> list[Entry]:
    plain = (
        right,
        wrong_by_one,
        rounds_otherwise,
        errs_as_the_cpu,
        errs_more,
        wrong_dtype,
        stays_on_the_cpu,
        copies_a_view,
        wrong_gradient,
        takes_gradients_for_contiguous,
        takes_inputs_for_contiguous,
        aborts,
        sleeps,
        draws,
        draws_anew,
        raises_on_the_cpu,
        wrong_if_compiled,
        wrong_if_compiled_anywhere,
        ends_if_empty,
        divides_by_the_count,
        lays_empty_out_otherwise,
    )
    return [
        *map(_entry, plain),
        _entry(forgiving, error_inputs_func=_wrong_samples),
        *map(_of_three, (right_of_three, takes_any_count, mixes_devices)),
        *map(_of_three, (ignores_a_wider_operand, lacks_complex32, lacks_integers)),
        _of_three(overlapping, inplace_variant=overlapping_),
        *map(_only_on_gpus, (only_on_gpus, stays_wide, also_refused_on_xpu)),
    ]
