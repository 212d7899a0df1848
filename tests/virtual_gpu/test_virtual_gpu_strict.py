"""The strict virtual GPU refuses the same calls as a discrete GPU."""

import signal
from functools import cache

import pytest
from gpu_child import MODES, layer_library, on_gpu, start

REFUSALS = {
    "a kernel reads malloc memory": "gpu.run(add, malloc, b, 1, N)",
    "a kernel writes malloc memory": "gpu.run(add, a, malloc, 1, N)",
    "a kernel reads another context": "gpu.run(add, foreign, b, 1, N)",
    "a kernel reads another device": "gpu.run(add, cpu_memory, b, 1, N)",
    "malloc memory is filled": "gpu.fill(malloc, 1, N)",
    "another context is filled": "gpu.fill(foreign, 1, N)",
    "another device is filled": "gpu.fill(cpu_memory, 1, N)",
    "another context is copied": "gpu.copy(b, foreign, N)",
    "another context is copied to": "gpu.copy(foreign, b, N)",
    "the CPU copies device memory": "cpu.copy(cpu_memory, a, N)",
    "the CPU fills device memory": "cpu.fill(a, 1, N)",
    "a CPU kernel reads device memory": "cpu.run(cpu_add, a, cpu_memory, 1, N)",
}


@cache
def outcomes(mode: str) -> dict[str, bool]:
    """The outcome of each call of REFUSALS, and of legal calls after them."""
    return on_gpu(
        f"""
        import ctypes, json
        from sycl_device import Device
        gpu, other, cpu = Device("gpu"), Device("gpu"), Device("cpu")
        add, cpu_add, N = gpu.kernel(), cpu.kernel(), 100
        a, b, foreign = gpu.upload([1.0] * N), gpu.allocate(N), other.upload([1.0] * N)
        cpu_memory = cpu.upload([1.0] * N)
        memory = (ctypes.c_float * N)()
        malloc = ctypes.addressof(memory)
        seen = {{
            what: eval(call) for what, call in {REFUSALS!r}.items()
        }}
        seen["still alive"] = gpu.run(add, a, b, 1, N) and gpu.copy(malloc, b, N)
        print(json.dumps(seen))
        """,
        mode,
    )


@pytest.mark.parametrize("what", REFUSALS)
def test_strict_refuses_what_lenient_allows(what: str) -> None:
    assert outcomes("lenient")[what] is True
    assert outcomes("strict")[what] is False


@pytest.mark.parametrize("mode", MODES)
def test_goes_on_after_a_refusal(mode: str) -> None:
    assert outcomes(mode)["still alive"] is True


def test_strict_finds_freed_memory_and_overruns() -> None:
    seen = on_gpu(
        """
        import json
        from sycl_device import Device
        gpu = Device("gpu")
        add, N = gpu.kernel(), 1024
        a, b = gpu.upload([1.0] * N), gpu.upload([1.0] * N)
        host = gpu.allocate(N, "host")
        seen = [gpu.copy(host, a, N), gpu.copy(host, a + 4, N), gpu.fill(a + 4, 0, N),
                gpu.run(add, a + 4 * N, b, 1, 0)]
        gpu.free(a)
        seen += [gpu.copy(host, a, N), gpu.run(add, a, b, 1, N)]
        # The address is not given out again.
        seen += [gpu.allocate(N) != a, gpu.copy(host, a, N), gpu.copy(host, b, N)]
        print(json.dumps(seen))
        """
    )
    whole, overrun, fill_overrun, _end, freed, freed_kernel, fresh, stale, alive = seen
    assert [whole, fresh, alive] == [True] * 3
    assert [overrun, fill_overrun, freed, freed_kernel, stale] == [False] * 5


def test_a_kernel_that_writes_beyond_its_allocation_is_found_at_the_free() -> None:
    child = start(
        """
        from sycl_device import Device
        gpu, N = Device("gpu"), 100
        add, a, b = gpu.kernel(), gpu.upload([1.0] * (N + 1)), gpu.allocate(N)
        whole = gpu.allocate(N)
        gpu.run(add, a, whole, 1, N)
        gpu.free(whole)
        print("the whole allocation", flush=True)
        gpu.run(add, a, b, 1, N + 1)
        gpu.free(b)
        """,
        XPURT_VIRTUAL_GPU="strict",
        OPENCL_LAYERS=layer_library(),
    )
    assert child.stdout == "the whole allocation\n"
    assert "a kernel wrote beyond the end of this allocation" in child.stderr
    assert child.stderr.count("refused") == 1


def test_says_on_stderr_why_a_call_is_refused() -> None:
    child = start(
        """
        import ctypes
        from sycl_device import Device
        gpu, memory = Device("gpu"), (ctypes.c_float * 4)()
        gpu.fill(ctypes.addressof(memory), 0, 4)
        """,
        XPURT_VIRTUAL_GPU="strict",
        OPENCL_LAYERS=layer_library(),
    )
    assert (
        "clEnqueueMemFillINTEL refused: a kernel or fill reaches only" in child.stderr
    )


@pytest.mark.parametrize(
    ("mode", "kind", "code"),
    [
        ("strict", "device", -signal.SIGSEGV),
        ("strict", "shared", 0),
        ("strict", "host", 0),
        ("lenient", "device", 0),
    ],
)
def test_only_strict_device_memory_is_unreadable(
    mode: str, kind: str, code: int
) -> None:
    child = start(
        f"""
        import ctypes, resource
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        from sycl_device import Device
        gpu = Device("gpu")
        address = gpu.allocate(16, {kind!r})
        assert gpu.fill(address, 0x3F800000, 16)
        print("filled", flush=True)
        print(ctypes.c_float.from_address(address + 4).value)
        """,
        XPURT_VIRTUAL_GPU=mode,
        OPENCL_LAYERS=layer_library(),
    )
    assert child.returncode == code, child.stderr
    assert child.stdout.split() == (["filled"] if code else ["filled", "1.0"])
