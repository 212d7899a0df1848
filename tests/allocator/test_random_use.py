"""Random sequences of what a program does with memory, on real streams."""

import threading
from random import Random

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from allocator.conftest import stats
from xpurt import _C

MIB = 1 << 20
SIZES = st.one_of(st.integers(1, 5000), st.integers(1, MIB), st.integers(MIB, 30 * MIB))
STEPS = st.one_of(
    st.tuples(st.just("allocate"), SIZES, st.integers(0, 2)),
    st.tuples(st.just("free"), st.integers(0, 1 << 30), st.just(0)),
    st.tuples(st.just("record"), st.integers(0, 1 << 30), st.integers(0, 2)),
    st.tuples(st.just("empty"), st.just(0), st.just(0)),
)


def check(live: dict[int, int]) -> None:
    now = stats()
    segments = _C.memory_snapshot()
    found = {}
    end = 0
    for segment in segments:
        assert segment["address"] >= end, "segments overlap"
        end = segment["address"] + segment["total_size"]
        assert sum(b["size"] for b in segment["blocks"]) == segment["total_size"]
        for block in segment["blocks"]:
            assert block["size"] % 512 == 0
            if block["state"] == "active_allocated":
                found[block["address"]] = block["requested_size"]
    assert found == live
    assert _C.live_memory() == (len(live), sum(live.values()))
    assert now["allocation.all.current"] == len(live)
    for name in (
        "allocated_bytes",
        "reserved_bytes",
        "active_bytes",
        "requested_bytes",
    ):
        parts = (now[f"{name}.{pool}.current"] for pool in ("small_pool", "large_pool"))
        assert now[f"{name}.all.current"] == sum(parts)
    assert now["reserved_bytes.all.current"] == sum(s["total_size"] for s in segments)
    assert now["active_bytes.all.current"] == sum(s["active_size"] for s in segments)
    split = [
        b["size"]
        for s in segments
        if len(s["blocks"]) > 1
        for b in s["blocks"]
        if b["state"] == "inactive"
    ]
    assert now["inactive_split.all.current"] == len(split)
    assert now["inactive_split_bytes.all.current"] == sum(split)


@pytest.mark.usefixtures("memory")
@settings(
    max_examples=40,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(steps=st.lists(STEPS, max_size=40))
def test_the_account_is_kept(steps: list[tuple[str, int, int]]) -> None:
    streams = [torch.Stream("xpu") for _ in range(3)]
    live: dict[int, int] = {}
    for step, number, which in steps:
        if step == "allocate":
            with streams[which]:
                address = _C.testing.raw_allocate(number)
            for start, size in live.items():
                assert address + number <= start or start + size <= address
            live[address] = number
        elif step == "free" and live:
            address = sorted(live)[number % len(live)]
            _C.testing.raw_free(address)
            del live[address]
        elif step == "record" and live:
            address = sorted(live)[number % len(live)]
            _C.testing.raw_record_stream(address, streams[which].stream_id, 0)
        elif step == "empty":
            torch._C._accelerator_emptyCache()
        check(live)
    for address in live:
        _C.testing.raw_free(address)
    check({})
    torch._C._accelerator_emptyCache()
    assert _C.memory_snapshot() == []
    assert stats()["reserved_bytes.all.current"] == 0


@pytest.mark.usefixtures("memory")
def test_threads() -> None:
    """Blocks are allocated, marked, checked and freed, also by another thread."""
    import ctypes

    errors: list[str] = []
    handed_over: list[int] = []
    lock = threading.Lock()

    def work(seed: int) -> None:
        choose = Random(seed)
        stream = torch.Stream("xpu") if seed % 2 else None
        live: list[tuple[int, int]] = []
        try:
            if stream is not None:
                torch._C._accelerator_setStream(stream)
            for step in range(600):
                if len(live) < 20 and choose.random() < 0.6:
                    size = choose.choice([8, 5000, 200_000, 2 * MIB])
                    address = _C.testing.raw_allocate(size)
                    mark = seed << 32 | step
                    ctypes.c_uint64.from_address(address).value = mark
                    live.append((address, mark))
                elif live:
                    address, mark = live.pop(choose.randrange(len(live)))
                    if ctypes.c_uint64.from_address(address).value != mark:
                        errors.append("a block was handed out twice")
                    if choose.random() < 0.2:
                        with lock:
                            handed_over.append(address)
                    else:
                        _C.testing.raw_free(address)
                if step % 150 == 0:
                    torch._C._accelerator_emptyCache()
                    with lock:
                        others, handed_over[:] = handed_over[:], []
                    for address in others:
                        _C.testing.raw_free(address)
        except Exception as error:
            errors.append(repr(error))
        for address, _ in live:
            _C.testing.raw_free(address)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not any(thread.is_alive() for thread in threads), "deadlock"
    for address in handed_over:
        _C.testing.raw_free(address)
    assert errors == []
    check({})
