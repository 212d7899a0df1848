"""The virtual GPU. Each test asks SYCL for devices in a process of its own."""

import json
import os
import signal
import subprocess
import sys
import textwrap
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path

import dpctl
import pytest

ROOT = Path(__file__).parents[2]
HERE = Path(__file__).parent
MODES = ("strict", "lenient")


def layer_library() -> str:
    (library,) = (ROOT / "xpurt").glob("_virtual_gpu*.so")
    return str(library)


def environment(**changes: str | None) -> dict[str, str]:
    """This process's environment without a virtual GPU, with the CPU driver, changed."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("XPURT_") and name != "OPENCL_LAYERS"
    }
    driver = Path(dpctl.__file__).parents[3] / "libintelocl.so"
    kept.setdefault("OCL_ICD_FILENAMES", str(driver))
    kept["PYTHONPATH"] = f"{HERE}{os.pathsep}{ROOT}"
    kept["TORCH_DEVICE_BACKEND_AUTOLOAD"] = "0"
    kept.update({name: value for name, value in changes.items() if value is not None})
    for name, value in changes.items():
        if value is None:
            kept.pop(name, None)
    return kept


def start(script: str, **changes: str | None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)],
        env=environment(**changes),
        capture_output=True,
        text=True,
        timeout=120,
    )


def on_gpu(script: str, mode: str = "strict", **settings: str) -> object:
    """Runs `script` beside a virtual GPU; what it printed last, read as JSON."""
    settings = {f"XPURT_VIRTUAL_GPU_{name}": value for name, value in settings.items()}
    child = start(
        script, XPURT_VIRTUAL_GPU=mode, OPENCL_LAYERS=layer_library(), **settings
    )
    assert child.returncode == 0, child.stderr
    return json.loads(child.stdout.splitlines()[-1])


@pytest.mark.parametrize("mode", MODES)
def test_is_listed_beside_the_cpu(mode: str) -> None:
    seen = on_gpu(
        """
        import dpctl, json
        gpu = dpctl.SyclDevice("gpu")
        try:
            gpu.create_sub_devices(partition=1)
            split = True
        except dpctl.SyclSubDeviceCreationError:
            split = False
        print(json.dumps({
            "kinds": sorted(d.device_type.name for d in dpctl.get_devices()),
            "name": gpu.name, "vendor": gpu.vendor, "driver": gpu.driver_version,
            "platform": gpu.sycl_platform.name, "split": split,
            "parent": gpu.parent_device is not None,
            "sub_devices": gpu.partition_max_sub_devices,
            "system": gpu.has_aspect_usm_system_allocations,
            "usm": [gpu.has_aspect_usm_device_allocations,
                    gpu.has_aspect_usm_host_allocations,
                    gpu.has_aspect_usm_shared_allocations],
            "cpu_system": dpctl.SyclDevice("cpu").has_aspect_usm_system_allocations,
        }))
        """,
        mode,
    )
    assert seen == {
        "kinds": ["cpu", "gpu"],
        "name": f"xpurt virtual GPU ({mode})",
        "vendor": "xpurt",
        "driver": "1.0",
        "platform": "xpurt virtual GPU",
        "split": False,
        "parent": False,
        "sub_devices": 0,
        "system": False,
        "usm": [True, True, True],
        "cpu_system": True,
    }


@pytest.mark.parametrize("mode", [None, "0", "", "unknown"])
def test_is_absent_unless_it_is_asked_for(mode: str | None) -> None:
    child = start(
        "import dpctl; print(dpctl.get_num_devices(device_type='gpu'), len(dpctl.get_devices()))",
        XPURT_VIRTUAL_GPU=mode,
        OPENCL_LAYERS=layer_library(),
    )
    assert child.stdout.split() == ["0", "1"]
    assert ("is unknown" in child.stderr) == (mode == "unknown")


def test_says_why_there_is_none_without_a_cpu_driver() -> None:
    child = start(
        "import dpctl; print(len(dpctl.get_devices()))",
        XPURT_VIRTUAL_GPU="strict",
        OPENCL_LAYERS=layer_library(),
        OCL_ICD_FILENAMES="",
        OCL_ICD_VENDORS="/nonexistent",
    )
    assert child.stdout.strip() == "0"
    assert "no OpenCL CPU device" in child.stderr


@pytest.mark.parametrize("mode", MODES)
def test_kernels_and_copies_are_right_on_both_devices(mode: str) -> None:
    seen = on_gpu(
        """
        import json
        from sycl_device import Device
        gpu, cpu = Device("gpu"), Device("cpu")
        add = gpu.kernel()
        N = 1000
        values = [float(i) for i in range(N)]
        a, b, c = gpu.upload(values), gpu.allocate(N), gpu.allocate(N)
        shared, host = gpu.allocate(N, "shared"), gpu.allocate(N, "host")
        x, y = cpu.allocate(N), cpu.allocate(N)
        assert gpu.run(add, a, b, 1, N)
        assert gpu.run(add, b + 4, c, 1, N - 1)  # an address inside of an allocation
        assert gpu.copy(shared, c, N) and gpu.run(add, shared, host, 1, N)
        # To the other device's memory and back; that is host memory to the GPU.
        assert gpu.copy(x, a, N) and cpu.run(cpu.kernel(), x, y, 5, N)
        assert gpu.copy(a, y, N)
        fill = gpu.upload(values)
        assert gpu.fill(fill + 8, 0x40490FDB, 3)
        kinds = [gpu.kind(p) for p in (b + 40, shared, host, x)]
        print(json.dumps([gpu.download(b, N), gpu.download(c, 5), gpu.download(host, 5),
                          gpu.download(a, 5), gpu.download(fill, 7), kinds]))
        """,
        mode,
    )
    b, c, host, a, fill, kinds = seen
    assert b == [i + 1.0 for i in range(1000)]
    assert c == [3.0, 4.0, 5.0, 6.0, 7.0]
    assert host == [4.0, 5.0, 6.0, 7.0, 8.0]
    assert a == [5.0, 6.0, 7.0, 8.0, 9.0]
    assert fill == pytest.approx([0, 1, 3.1415927, 3.1415927, 3.1415927, 5, 6])
    device, shared, host_kind, unknown = kinds
    assert len({device, shared, host_kind, unknown}) == 4


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
    """What became of each call of REFUSALS, and of legal calls after them."""
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
    assert whole and fresh and alive
    assert not (overrun or fill_overrun or freed or freed_kernel or stale)


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
    assert "clEnqueueMemFillINTEL refused: a kernel or fill reaches only" in child.stderr


@pytest.mark.parametrize(
    ("mode", "kind", "code"),
    [
        ("strict", "device", -signal.SIGSEGV),
        ("strict", "shared", 0),
        ("strict", "host", 0),
        ("lenient", "device", 0),
    ],
)
def test_only_strict_device_memory_is_unreadable(mode: str, kind: str, code: int) -> None:
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


def test_events_order_work_across_the_devices() -> None:
    # The GPU is slow, so that the CPU would read too early without the dependency.
    seen = on_gpu(
        """
        import json
        from sycl_device import Device, done
        gpu, cpu = Device("gpu"), Device("cpu")
        add, cpu_add, N = gpu.kernel(), cpu.kernel(), 100
        a, host = gpu.upload([1.0] * N), gpu.allocate(N, "host")
        mine = cpu.allocate(N)
        assert gpu.fill(host, 0, N)
        assert gpu.run(add, a, host, 0, N) and cpu.run(cpu_add, host, mine, 0, N)
        first = gpu.submit(add, a, host, 1, N)
        second = cpu.submit(cpu_add, host, mine, 1, N, after=first)
        third = gpu.submit(add, a, host, 41, N, after=second)
        assert done(second) and done(first)
        values = cpu.download(mine, N)
        assert done(third)
        print(json.dumps([values, gpu.download(host, N)]))
        """,
        DELAY_US="50000",
    )
    assert seen == [[3.0] * 100, [42.0] * 100]


@pytest.mark.parametrize("order", ["in_order", "out_of_order"])
def test_delay_passes_on_the_device_not_on_the_host(order: str) -> None:
    properties = 'property="in_order"' if order == "in_order" else ""
    seen = on_gpu(
        f"""
        import json, time
        from sycl_device import Device, done
        gpu, cpu = Device("gpu", {properties}), Device("cpu")
        add, cpu_add, N = gpu.kernel(), cpu.kernel(), 100
        a, b = gpu.upload([1.0] * N), gpu.allocate(N)
        x, y = cpu.upload([1.0] * N), cpu.allocate(N)
        gpu.run(add, a, b, 1, N), cpu.run(cpu_add, x, y, 1, N)
        begin = time.perf_counter()
        events = [gpu.submit(add, a, b, 1, N) for _ in range(10)]
        submitted = time.perf_counter()
        cpu.run(cpu_add, x, y, 1, N)
        beside = time.perf_counter()
        for event in events:
            done(event)
        end = time.perf_counter()
        print(json.dumps([submitted - begin, beside - begin, end - begin,
                          gpu.download(b, 2)]))
        """,
        DELAY_US="50000",
    )
    submit_s, beside_s, total_s, values = seen
    assert total_s >= 10 * 0.05
    assert submit_s < total_s / 2
    assert beside_s < total_s / 2
    assert values == [2.0, 2.0]


@pytest.mark.parametrize("mode", MODES)
def test_memory_is_limited(mode: str) -> None:
    seen = on_gpu(
        """
        import ctypes, dpctl, json
        from sycl_device import Device
        gpu, MIB = Device("gpu"), 1 << 18  # floats
        seen = [gpu.device.global_mem_size, gpu.allocate(65 * MIB) is None]
        first, second = gpu.allocate(40 * MIB), gpu.allocate(20 * MIB, "shared")
        seen += [first is None or second is None, gpu.allocate(8 * MIB) is None,
                 gpu.allocate(8 * MIB, "shared") is None,
                 gpu.allocate(80 * MIB, "host") is None]
        gpu.free(first)
        seen += [gpu.allocate(40 * MIB) is None, gpu.allocate(8 * MIB) is None]
        cpu = Device("cpu")
        seen += [cpu.allocate(80 * MIB) is None]
        print(json.dumps(seen))
        """,
        mode,
        MEMORY=str(64 << 20),
    )
    assert seen == [64 << 20, True, False, True, True, False, False, True, False]


FP64_SCRIPT = """
    import dpctl, dpctl.program, json
    queue = dpctl.SyclQueue("gpu")
    def builds(source):
        try:
            dpctl.program.create_program_from_source(queue, source)
            return True
        except dpctl.program.SyclProgramCompilationError:
            return False
    print(json.dumps([
        dpctl.SyclDevice("gpu").has_aspect_fp64,
        dpctl.SyclDevice("cpu").has_aspect_fp64,
        builds("kernel void k(global double *a) { a[0] = 1; }"),
        builds("kernel void k(global double4 *a) { a[0] = 1; }"),
        builds("kernel void k(global float *a) { a[0] = a[0] * 2.5; }"),
    ]))
    """


@pytest.mark.parametrize("mode", MODES)
def test_doubles_can_be_taken_away(mode: str) -> None:
    assert on_gpu(FP64_SCRIPT, mode) == [True, True, True, True, True]
    assert on_gpu(FP64_SCRIPT, mode, FP64="0") == [False, True, False, False, True]


@pytest.mark.parametrize("mode", MODES)
def test_opencl_programs_from_source_and_from_binary(mode: str) -> None:
    seen = on_gpu(
        """
        import ctypes, json
        from opencl_device import *
        (gpu,) = devices(GPU)
        where = context(gpu)
        queue = made("clCreateCommandQueueWithProperties", where, gpu, None)
        call = lambda name, result: extension(name, result, gpu)
        source = "kernel void twice(global float *a) { a[get_global_id(0)] *= 2; }"
        compiled = from_source(where, source)
        seen = []
        for program in (compiled, from_binary(where, gpu, binary(compiled))):
            kernel = made("clCreateKernel", program, b"twice")
            memory = call("clDeviceMemAllocINTEL", c_void_p)(
                where, gpu, None, c_size_t(64), c_uint(0), None)
            values = (ctypes.c_float * 16)(*range(16))
            copy = call("clEnqueueMemcpyINTEL", c_int)
            ok(copy(queue, c_uint(1), c_void_p(memory), values, c_size_t(64), 0, None, None))
            ok(call("clSetKernelArgMemPointerINTEL", c_int)(kernel, 0, c_void_p(memory)))
            ok(cl.clEnqueueNDRangeKernel(queue, kernel, 1, None, byref(c_size_t(16)), None,
                                         0, None, None))
            ok(cl.clFinish(queue))
            ok(copy(queue, c_uint(1), values, c_void_p(memory), c_size_t(64), 0, None, None))
            ok(call("clMemBlockingFreeINTEL", c_int)(where, c_void_p(memory)))
            seen.append(list(values))
        print(json.dumps(seen))
        """,
        mode,
    )
    assert seen == [[2.0 * i for i in range(16)]] * 2


@pytest.mark.parametrize("mode", MODES)
def test_opencl_sees_a_device_of_its_own(mode: str) -> None:
    seen = on_gpu(
        """
        import json
        from opencl_device import *
        (gpu,), (cpu,) = devices(GPU), devices(CPU)
        def fails(call):
            try:
                call()
                return None
            except RuntimeError as error:
                return str(error)
        where = context(gpu)
        cl.clSVMAlloc.restype = c_void_p
        print(json.dumps({
            "same uuid": info(gpu, DEVICE_UUID, 16) == info(cpu, DEVICE_UUID, 16),
            "svm": int.from_bytes(info(gpu, DEVICE_SVM, 8), "little"),
            "unified": [info(d, HOST_UNIFIED, 4)[0] for d in (gpu, cpu)],
            "mixed": [fails(lambda: context(gpu, cpu)), fails(lambda: context(cpu, gpu))],
            "alone": fails(lambda: context(cpu)),
            "svm memory": cl.clSVMAlloc(where, c_ulong(1), c_size_t(64), 0) is not None,
            "buffers": [fails(lambda: made("clCreateBuffer", where, c_ulong(1),
                                           c_size_t(size), None)) for size in (60, 60)],
        }))
        """,
        mode,
        MEMORY="100",
    )
    assert seen == {
        "same uuid": False,
        "svm": 0,
        "unified": [0, 1],
        "mixed": ["clCreateContext: -33"] * 2,
        "alone": None,
        "svm memory": mode == "lenient",
        "buffers": [None, "clCreateBuffer: -4"],
    }


def test_profiling_shows_the_delay() -> None:
    (elapsed_ns,) = on_gpu(
        """
        import json
        from opencl_device import *
        (gpu,) = devices(GPU)
        where = context(gpu)
        wishes = (c_ulong * 3)(0x1093, PROFILING, 0)
        queue = made("clCreateCommandQueueWithProperties", where, gpu, wishes)
        kernel = made("clCreateKernel", from_source(where, "kernel void none() {}"), b"none")
        event, start, end = c_void_p(), c_ulong(), c_ulong()
        ok(cl.clEnqueueNDRangeKernel(queue, kernel, 1, None, byref(c_size_t(1)), None, 0,
                                     None, byref(event)))
        ok(cl.clWaitForEvents(1, byref(event)))
        for out, what in ((start, PROFILING_START), (end, PROFILING_END)):
            ok(cl.clGetEventProfilingInfo(event, what, c_size_t(8), byref(out), None))
        print(json.dumps([end.value - start.value]))
        """,
        DELAY_US="20000",
    )
    assert elapsed_ns >= 0.9 * 20_000_000


def test_every_process_ends_cleanly() -> None:
    # Kernels are in flight at the end: nobody waits for them.
    script = """
        from sycl_device import Device
        gpu, cpu = Device("gpu"), Device("cpu")
        add, N = gpu.kernel(), 100
        a, b = gpu.upload([1.0] * N), gpu.allocate(N)
        for _ in range(3):
            assert gpu.submit(add, a, b, 1, N)
        print("end")
    """

    def run(number: int) -> tuple[int, str, str]:
        child = start(
            script,
            XPURT_VIRTUAL_GPU=MODES[number % 2],
            OPENCL_LAYERS=layer_library(),
            XPURT_VIRTUAL_GPU_DELAY_US="1000" if number % 4 < 2 else None,
        )
        return child.returncode, child.stdout, child.stderr

    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(run, range(20))) == [(0, "end\n", "")] * 20
