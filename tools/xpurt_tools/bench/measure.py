"""Measures one row: stock CPU tensors and xpu, alternating."""

import gc
from collections.abc import Callable
from dataclasses import replace
from typing import cast

import torch

import xpurt
from xpurt_tools.bench import page_faults
from xpurt_tools.bench.results import OtherResult, RowResult
from xpurt_tools.bench.row import Call, Row, Unavailable, Work, counted_flops
from xpurt_tools.bench.timing import (
    Budget,
    Ratio,
    Side,
    go_on,
    interleaved,
    processor_ratio_of,
    ratio_of,
)

# Of the machine: see `CalibrationLoop`.
Load = Callable[[], float]

CPU = torch.device("cpu")
# Fewer page faults per call are not caused by the allocator.
FAULTS_THAT_COUNT = 1.0
FAULT_CALLS = 2
# A compiled graph has a second form, which is compiled and tried once what was lost without
# it equals its price: seconds of build.
LEARNING_OF_COMPILED = 8


def measure(row: Row, budget: Budget, load: Load = lambda: 1.0) -> RowResult:
    """The row's times as in a user's program. An exception becomes the result's
    error. load: of the machine, before each round."""
    try:
        return _measure_bytes(row) if row.in_bytes else _measure(row, budget, load)
    except Unavailable as reason:
        return RowResult(row.name, error=f"not here: {reason}")
    except Exception as error:  # of any op, in any library
        return RowResult(row.name, error=first_line(error))
    finally:
        _release(row)


def measure_neutral(
    row: Row, result: RowResult, budget: Budget, load: Load
) -> RowResult:
    """The result, with the ratio measured while malloc keeps freed memory. If a call on
    the CPU causes no page faults, it is the ratio that is there."""
    if result.ratio is None:
        return result
    if row.in_bytes or result.faults < FAULTS_THAT_COUNT:
        return replace(result, neutral=result.ratio, neutral_cpu_s=result.cpu_s)
    try:
        _, sides = _sides(row)
        _learn(row, sides[1], budget)
        cpu, xpu = interleaved(sides, budget, load=load)
    except Exception as error:
        return replace(result, error=f"without page faults: {first_line(error)}")
    finally:
        _release(row)
    return replace(
        result,
        neutral=ratio_of(xpu, cpu),
        neutral_cpu_s=cpu.median,
        load=max(result.load, cpu.load),
    )


def _learn(row: Row, xpu: Side, budget: Budget) -> None:
    go_on(xpu, budget.learning * (LEARNING_OF_COMPILED if row.compiled else 1))


def _release(row: Row) -> None:
    gc.collect()
    try:
        torch.xpu.synchronize()
        torch.xpu.empty_cache()
    except RuntimeError:
        pass  # work that failed late: the next row reports it
    if row.compiled:
        # Dynamo counts the graphs of a function, and compiles no more than eight.
        torch.compiler.reset()


def _sides(row: Row) -> tuple[Work, list[Side]]:
    """The work, and its two sides: what xpu is compared with, and xpu."""
    xpu = torch.device("xpu", torch.xpu.current_device())
    if row.beside is not None:
        work = row.beside(xpu)
        first = Side("beside", work.call, torch.xpu.synchronize)
    else:
        work = row.prepare(CPU)
        first = Side("cpu", work.call)
    return work, [first, Side("xpu", row.prepare(xpu).call, torch.xpu.synchronize)]


def _measure_bytes(row: Row) -> RowResult:
    work, sides = _sides(row)
    cpu, xpu = (float(cast(int, side.call())) for side in sides)
    value = xpu / max(cpu, 1.0)
    return RowResult(
        row.name,
        cpu_bytes=cpu,
        xpu_bytes=xpu,
        ratio=Ratio(value, value, value),
        rounds=1,
        elements=work.elements,
    )


def _measure(row: Row, budget: Budget, load: Load) -> RowResult:
    work, sides = _sides(row)
    others, results = _others(row)
    flops = 0 if row.compiled else counted_flops(work.call)
    _learn(row, sides[1], budget)
    cpu, xpu, *times = interleaved([*sides, *others], budget, load=load)
    for side, each in zip(others, times, strict=True):
        results[side.name] = OtherResult(
            seconds=each.median,
            ratio=ratio_of(xpu, each),
            processor=processor_ratio_of(xpu, each),
        )
    return RowResult(
        row.name,
        cpu_s=cpu.median,
        xpu_s=xpu.median,
        ratio=ratio_of(xpu, cpu),
        processor=processor_ratio_of(xpu, cpu),
        load=cpu.load,
        faults=_faults_of(sides[0].call),
        rounds=len(cpu.seconds),
        tiers=_tiers_of(sides[1].call),
        size_bytes=work.size_bytes,
        flops=flops,
        elements=work.elements,
        others=results,
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


def _others(row: Row) -> tuple[list[Side], dict[str, OtherResult]]:
    """The same work by other libraries, and what is to be said of those that fail or
    are not installed."""
    sides, without = [], {}
    for name, prepare in row.others.items():
        try:
            call, finish = prepare()
            call()
            finish()
        except ImportError as error:
            without[name] = OtherResult(missing=error.name or name)
        except Exception as error:  # of any op, in any library
            without[name] = OtherResult(first_line(error))
        else:
            sides.append(Side(name, call, finish))
    return sides, without


def first_line(error: BaseException) -> str:
    """The type of the error, and the first line of its message."""
    said = str(error).strip().splitlines()
    return f"{type(error).__name__}: {said[0]}" if said else type(error).__name__
