"""Measures one row: stock CPU tensors and xpu, alternating."""

import gc
from dataclasses import replace
from typing import Any

import torch

import xpurt
from xpurt.bench import page_faults
from xpurt.bench.results import RowResult
from xpurt.bench.row import Call, Row, Unavailable, Work, counted_flops
from xpurt.bench.timing import Budget, Side, go_on, interleaved, ratio_of
from xpurt.mapping import current_placement

CPU = torch.device("cpu")
# Fewer page faults per call are not caused by the allocator.
FAULTS_THAT_COUNT = 1.0
FAULT_CALLS = 2


def measure(row: Row, budget: Budget, dpnp: Any = None) -> RowResult:
    """The row's times as in a user's program. An exception becomes the result's error.

    dpnp: the module to compare with; None: no comparison.
    """
    try:
        return _measure(row, budget, dpnp)
    except Unavailable as reason:
        return RowResult(row.name, error=f"not here: {reason}")
    except Exception as error:  # of any op, in any library
        return RowResult(row.name, error=first_line(error))
    finally:
        _release()


def measure_neutral(row: Row, result: RowResult, budget: Budget) -> RowResult:
    """The result, with the ratio measured while malloc keeps freed memory. If a call on
    the CPU causes no page faults, it is the ratio that is there."""
    if result.ratio is None:
        return result
    if result.faults < FAULTS_THAT_COUNT:
        return replace(result, neutral=result.ratio, neutral_cpu_s=result.cpu_s)
    try:
        cpu, xpu = interleaved(_sides(row)[1], budget)
    except Exception as error:
        return replace(result, error=f"without page faults: {first_line(error)}")
    finally:
        _release()
    return replace(result, neutral=ratio_of(xpu, cpu), neutral_cpu_s=cpu.median)


def _release() -> None:
    gc.collect()
    try:
        torch.xpu.synchronize()
        torch.xpu.empty_cache()
    except RuntimeError:
        pass  # work that failed late: the next row reports it


def _sides(row: Row) -> tuple[Work, list[Side]]:
    """The work, and its two sides: on the CPU and on xpu."""
    work = row.prepare(CPU)
    on_xpu = row.prepare(torch.device("xpu", torch.xpu.current_device()))
    return work, [
        Side("cpu", work.call),
        Side("xpu", on_xpu.call, torch.xpu.synchronize),
    ]


def _measure(row: Row, budget: Budget, dpnp: Any) -> RowResult:
    work, sides = _sides(row)
    other, dpnp_error = _dpnp_side(row, dpnp)
    flops = 0 if row.compiled else counted_flops(work.call)
    go_on(sides[1], budget.learning)
    times = interleaved([*sides, *other], budget)
    cpu, xpu = times[:2]
    return RowResult(
        row.name,
        cpu_s=cpu.median,
        xpu_s=xpu.median,
        ratio=ratio_of(xpu, cpu),
        faults=_faults_of(sides[0].call),
        rounds=len(cpu.seconds),
        tiers=_tiers_of(sides[1].call),
        size_bytes=work.size_bytes,
        flops=flops,
        elements=work.elements,
        dpnp_s=times[2].median if other else None,
        dpnp_error=dpnp_error,
    )


def _tiers_of(call: Call) -> dict[str, int]:
    """Calls of ops per tier, in a call that is not the first."""
    xpurt.op_report(reset=True)
    call()
    torch.xpu.synchronize()
    found: dict[str, int] = {}
    for op in xpurt.op_report():
        found[op.tier] = found.get(op.tier, 0) + op.calls
    return found


def _faults_of(call: Call) -> float:
    """Page faults per call, once all lasting memory is in place."""
    before = page_faults.faults_so_far()
    for _ in range(FAULT_CALLS):
        call()
    return (page_faults.faults_so_far() - before) / FAULT_CALLS


def _dpnp_side(row: Row, dpnp: Any) -> tuple[list[Side], str]:
    """The same work by dpnp on the device of xpu; and the reason if it fails.

    On a queue of its own: once xpu's queue has been handed out, every op on the CPU has
    to check the queue for work of other code.
    """
    if dpnp is None or row.dpnp is None:
        return [], ""
    (device, *_) = current_placement().ordinals[torch.xpu.current_device()]

    def array_of(tensor: torch.Tensor) -> Any:
        return dpnp.asarray(tensor.numpy(), device=device.filter_string)

    try:
        queue = dpnp.empty(0, device=device.filter_string).sycl_queue
        call = row.dpnp(dpnp, array_of)
        call()
        queue.wait()
    except Exception as error:
        return [], first_line(error)
    return [Side("dpnp", call, queue.wait)], ""


def first_line(error: BaseException) -> str:
    """The type of the error, and the first line of its message."""
    said = str(error).strip().splitlines()
    return f"{type(error).__name__}: {said[0]}" if said else type(error).__name__
