"""The virtual GPU beside the CPU. Each test uses it in a process of its own."""

import textwrap
from concurrent.futures import ThreadPoolExecutor

import pytest
from gpu_child import MODES, layer_library, on_gpu, start


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


@pytest.mark.one_in(2)
@pytest.mark.parametrize("mode", [None, "0", "", "off", "unknown"])
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
def test_the_link_limits_copies_between_host_and_device(mode: str) -> None:
    """At 0.1 GB/s 4 MB take 40 ms in either direction; a copy within the device does not
    take the link, nor does one of the CPU device."""
    seen = on_gpu(
        """
        import json, time
        from sycl_device import Device
        gpu, cpu, N = Device("gpu"), Device("cpu"), 1_000_000
        there, other = gpu.allocate(N), gpu.allocate(N)
        host, at_cpu = gpu.allocate(N, "host"), cpu.allocate(N)
        def seconds(device, to, source):
            device.copy(to, source, N)
            begin, busy = time.perf_counter(), time.process_time()
            assert device.copy(to, source, N)
            return time.perf_counter() - begin, time.process_time() - busy
        gpu.fill(host, 0, N), gpu.fill(other, 0, N)
        seen = [seconds(gpu, there, host), seconds(gpu, host, there)]
        none = [min(seconds(*each)[0] for _ in range(5))
                for each in ((gpu, there, other), (cpu, at_cpu, host))]
        print(json.dumps([seen, none, gpu.download(there, 1)]))
        """,
        mode,
        LINK="0.1",
    )
    assert isinstance(seen, list)
    over_the_link, others, values = seen
    assert all(seconds >= 0.04 for seconds, _ in over_the_link)
    assert all(busy < 0.03 for _, busy in over_the_link)
    assert all(seconds < 0.02 for seconds in others)
    assert values == [0.0]


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


SLOW_ADD = """
kernel void add(global const float *a, global float *b, float c) {
  size_t i = get_global_id(0);
  float sum = a[i];
  for (int k = 0; k < 400000; ++k) sum = sin(sum) + c;
  b[i] = sum;
}
"""


@pytest.mark.rest
def test_every_process_ends_cleanly() -> None:
    # Kernels are in flight at the end, without a wait. Each takes 0.1 s and more.
    script = """
        from sycl_device import Device
        gpu, cpu = Device("gpu"), Device("cpu")
        add, N = gpu.kernel(SLOW), 100
        a, b = gpu.upload([1.0] * N), gpu.allocate(N)
        for _ in range(3):
            assert gpu.submit(add, a, b, 1, N)
        print("end")
    """

    def run(number: int) -> tuple[int, str, str]:
        child = start(
            f"SLOW = {SLOW_ADD!r}\n" + textwrap.dedent(script),
            XPURT_VIRTUAL_GPU=MODES[number % 2],
            OPENCL_LAYERS=layer_library(),
            XPURT_VIRTUAL_GPU_DELAY_US="100000" if number % 4 < 2 else None,
        )
        return child.returncode, child.stdout, child.stderr

    with ThreadPoolExecutor(2) as pool:
        ends = list(pool.map(run, range(8)))
    assert [end for end in ends if end != (0, "end\n", "")] == []


def test_new_memory_is_nan_in_strict_mode() -> None:
    """So a kernel that reads beyond its operands is seen."""
    seen = on_gpu(
        """
        import dpctl, dpctl.memory, json
        memory = dpctl.memory.MemoryUSMDevice(64, queue=dpctl.SyclQueue("gpu"))
        print(json.dumps(memory.copy_to_host().tolist()))
        """,
        "strict",
    )
    assert seen == [255] * 64
