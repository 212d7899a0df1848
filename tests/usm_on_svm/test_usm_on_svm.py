"""USM made from coarse-grained SVM, as SYCL and as OpenCL see it."""

import signal

import pytest
from usm_on_svm.svm_child import hiding_library, on_fine_grained, on_svm, seen

ASPECTS = """
        import dpctl
        def aspects(device):
            return [device.has_aspect_usm_device_allocations,
                    device.has_aspect_usm_host_allocations,
                    device.has_aspect_usm_shared_allocations,
                    device.has_aspect_usm_system_allocations]
"""


def test_a_device_reports_what_its_svm_can_be() -> None:
    child = on_svm(
        ASPECTS
        + """
        from opencl_device import GPU, devices, info
        device, (gpu,) = dpctl.SyclDevice("gpu"), devices(GPU)
        words = info(gpu, 0x1030, 4096).rstrip(b"\\0").decode().split()
        print(json.dumps([
            aspects(device), device.sycl_platform.name,
            "cl_intel_unified_shared_memory" in words,
            aspects(dpctl.SyclDevice("cpu"))]))
        """
    )
    assert seen(child) == [
        [True, True, False, False],
        "xpurt virtual GPU with USM by xpurt",
        True,
        [True] * 4,
    ]


def test_fine_grained_svm_is_shared_memory_too() -> None:
    child = on_fine_grained(
        ASPECTS
        + """
        import ctypes
        from opencl_device import CPU, devices, info
        from sycl_device import Device
        words = info(devices(CPU)[0], 0x1030, 8192).rstrip(b"\\0").decode().split()
        cpu = Device("cpu")
        shared, host = cpu.allocate(64, "shared"), cpu.allocate(64, "host")
        values = (ctypes.c_float * 64)
        values.from_address(shared)[:] = [3.0] * 64
        assert cpu.run(cpu.kernel(), shared, host, 1, 64)
        print(json.dumps([aspects(cpu.device), values.from_address(host)[63],
                          cpu.device.sycl_platform.name,
                          [word for word in words if "command_buffer" in word]]))
        """
    )
    aspects, last, platform, command_buffers = seen(child)
    assert command_buffers == []
    assert aspects == [True] * 4
    assert last == 4
    assert platform.endswith(" with USM by xpurt")


@pytest.mark.parametrize("name", ["NVIDIA CUDA", "AMD Accelerated Parallel Processing"])
@pytest.mark.parametrize("layer", [True, False])
def test_sycl_lists_platforms_whose_name_it_hides(name: str, layer: bool) -> None:
    script = """
        import dpctl
        print(json.dumps([each.sycl_platform.name for each in dpctl.get_devices()]))
    """
    settings = {"TEST_PLATFORM_NAME": name}
    if not layer:
        settings["OPENCL_LAYERS"] = hiding_library()
    found = seen(on_fine_grained(script, **settings))
    assert found == (["Intel(R) Corporation with USM by xpurt"] if layer else [])


def test_is_off_unless_it_is_asked_for() -> None:
    child = on_fine_grained(
        f"{ASPECTS}\n        print(json.dumps(aspects(dpctl.SyclDevice('cpu'))))",
        XPURT_USM_ON_SVM="off",
    )
    assert seen(child) == [False] * 4


def test_the_doctor_names_the_device_and_the_layer() -> None:
    child = on_fine_grained(
        """
        from xpurt.command_line.diagnosis import check_devices
        print(json.dumps([each.found for each in check_devices()]))
        """,
        XPURT_USM_ON_SVM="off",
    )
    (found,) = (each for each in seen(child) if "only shared virtual memory" in each)
    assert "can't be used" in found
    assert "set XPURT_USM_ON_SVM=on" in found


def test_kernels_copies_and_fills_are_right() -> None:
    child = on_svm(
        """
        from sycl_device import Device
        gpu, cpu, N = Device("gpu"), Device("cpu"), 1000
        add = gpu.kernel()
        values = [float(i) for i in range(N)]
        a, b, c = gpu.upload(values), gpu.allocate(N), gpu.allocate(N)
        assert gpu.run(add, a, b, 1, N)
        assert gpu.run(add, b + 4, c, 1, N - 1)  # an address inside of an allocation
        x, y = cpu.upload(values), cpu.allocate(N)
        assert cpu.run(cpu.kernel(), x, y, 5, N) and gpu.copy(a, y, N)
        fill = gpu.upload(values)
        assert gpu.fill(fill + 8, 0x40490FDB, 3)
        host = gpu.allocate(4, "host")
        kinds = [gpu.kind(p) for p in (b, b + 40, host, host + 4, x, 4096)]
        print(json.dumps([gpu.download(b, N), gpu.download(c, 5), gpu.download(a, 5),
                          gpu.download(fill, 7), kinds]))
        """
    )
    b, c, a, fill, kinds = seen(child)
    assert b == [i + 1.0 for i in range(1000)]
    assert c == [3, 4, 5, 6, 7]
    assert a == [5, 6, 7, 8, 9]
    assert fill == pytest.approx([0, 1, 3.1415927, 3.1415927, 3.1415927, 5, 6])
    device, inside, host, host_inside, other, outside = kinds
    assert (device, host, other) == (inside, host_inside, outside)
    assert len({device, host, other}) == 3


def test_shared_memory_is_refused_with_the_reason() -> None:
    child = on_svm(
        """
        from sycl_device import Device
        gpu = Device("gpu")
        print(json.dumps(gpu.allocate(4, "shared")))
        from opencl_device import GPU, context, devices, extension
        import ctypes
        card, = devices(GPU)
        code = ctypes.c_int()
        extension("clSharedMemAllocINTEL", ctypes.c_void_p, card)(
            context(card), card, None, ctypes.c_size_t(64), 0, ctypes.byref(code))
        print(json.dumps(code.value))
        """
    )
    assert seen(child) == -59
    assert "clSharedMemAllocINTEL refused: the device's SVM is coarse" in child.stderr


def test_kernels_read_and_write_host_memory() -> None:
    child = on_svm(
        """
        import ctypes
        from sycl_device import Device
        gpu, N = Device("gpu"), 100
        add = gpu.kernel()
        host, a = gpu.allocate(N, "host"), gpu.upload([1.0] * N)
        mine = (ctypes.c_float * N).from_address(host)
        mine[:] = [5.0] * N
        assert gpu.run(add, host, a, 1, N)
        seen = [gpu.download(a, 2)]
        assert gpu.run(add, a, host + 4, 1, 1)  # the others keep their values
        seen.append(mine[:3])
        assert gpu.fill(host + 4, 0x40000000, 1)
        seen.append(mine[:3])
        print(json.dumps(seen))
        """
    )
    assert seen(child) == [[6, 6], [5, 7, 5], [5, 2, 5]]


def test_runs_with_the_same_host_memory_follow_each_other() -> None:
    # The copies take long, so that those of two queues would overlap.
    child = on_svm(
        """
        import ctypes, dpctl
        from sycl_device import Device, done
        gpu, second, N = Device("gpu"), Device("gpu"), 1 << 22
        second.context = gpu.context
        second.queue = dpctl.SyclQueue(gpu.context, gpu.device)
        second.ref = second.queue.addressof_ref()
        add, host = gpu.kernel(), gpu.allocate(N, "host")
        mine = (ctypes.c_float * N).from_address(host)
        ctypes.memset(host, 0, 4 * N)
        # Each run adds 1 to what the one before wrote.
        runs = [each.submit(add, host, host, 1, N) for each in (gpu, second) * 10]
        assert all([done(event) for event in runs])
        print(json.dumps(sorted(set(mine))))
        """
    )
    assert seen(child) == [20]


FOLLOW = """
        from ctypes import c_void_p, addressof
        from sycl_device import Device
        gpu, N = Device("gpu"), 16
        follow = gpu.kernel('''kernel void follow(
            global const ulong *a, global float *b, float c) {
          b[get_global_id(0)] = ((global float *)a[0])[get_global_id(0)] + c;
        }''', "follow")
        a, b = gpu.allocate(N), gpu.allocate(N)
        def followed(value):
            held = gpu.upload([value] * N)  # listed at the next run, also later ones
            assert gpu.copy(a, addressof(c_void_p(held)), 2)
            assert gpu.run(follow, a, b, 1, N)
            return gpu.download(b, 1)[0]
"""


def test_a_kernel_reaches_all_memory_of_its_context() -> None:
    child = on_svm(f"{FOLLOW}\n        print(json.dumps([followed(2), followed(3)]))")
    assert seen(child) == [3, 4]


@pytest.mark.parametrize(
    ("indirect", "options", "code"),
    [
        (1, "", 0),
        (0, "", -signal.SIGSEGV),
        (1, "-DXPURT_ARGUMENTS_ONLY", -signal.SIGSEGV),
    ],
)
def test_indirect_access_is_what_lists_it(
    indirect: int, options: str, code: int
) -> None:
    child = on_svm(
        f"""
        import ctypes, time
        from ctypes import byref, c_int, c_size_t, c_ulong, c_void_p
        from opencl_device import GPU, cl, context, devices, extension, from_source
        from opencl_device import made, ok
        gpu, = devices(GPU)
        here = context(gpu)
        queue = made("clCreateCommandQueue", here, gpu, c_ulong(0))
        def usm():
            allocate = extension("clDeviceMemAllocINTEL", c_void_p, gpu)
            return c_void_p(allocate(here, gpu, None, c_size_t(256), 0, None))
        fill = extension("clEnqueueMemFillINTEL", c_int, gpu)
        copy = extension("clEnqueueMemcpyINTEL", c_int, gpu)
        set_arg = extension("clSetKernelArgMemPointerINTEL", c_int, gpu)
        a, b, c = usm(), usm(), usm()
        seven = ctypes.c_float(7)
        ok(fill(queue, c, byref(seven), c_size_t(4), c_size_t(256), 0, None, None))
        ok(copy(queue, 1, a, (c_void_p * 1)(c.value), c_size_t(8), 0, None, None))
        ok(cl.clFinish(queue)), time.sleep(0.2)
        program = from_source(here, '''kernel void follow(
            global const ulong *a, global float *b) {{
          b[0] = ((global float *)a[0])[0];
        }}''', {options!r})
        follow = made("clCreateKernel", program, b"follow")
        ok(set_arg(follow, 0, a)), ok(set_arg(follow, 1, b))
        ok(cl.clSetKernelExecInfo(follow, 0x4201, c_size_t(4), byref(c_int({indirect}))))
        ok(cl.clEnqueueNDRangeKernel(
            queue, follow, 1, None, byref(c_size_t(1)), None, 0, None, None))
        ok(cl.clFinish(queue))
        host = ctypes.c_float()
        ok(copy(queue, 1, byref(host), b, c_size_t(4), 0, None, None))
        print(json.dumps(host.value))
        """
    )
    assert child.returncode == code, child.stderr
    assert child.stdout.strip() == ("" if code else "7.0")


@pytest.mark.parametrize("released", [False, True])
def test_a_free_waits_for_the_work_of_all_queues(released: bool) -> None:
    # If it did not, the pages would be gone when the kernel runs: SIGSEGV.
    child = on_svm(
        f"""
        import time
        from sycl_device import Device
        gpu, N = Device("gpu"), 100
        add, a, b = gpu.kernel(), gpu.upload([1.0] * N), gpu.allocate(N)
        other = Device("gpu")
        from opencl_device import GPU, cl, context, devices, extension, from_source
        from opencl_device import made, ok
        import ctypes
        from ctypes import byref, c_int, c_size_t, c_ulong, c_void_p
        card, = devices(GPU)
        here = context(card)
        queue = made("clCreateCommandQueue", here, card, c_ulong(0))
        allocate = extension("clDeviceMemAllocINTEL", c_void_p, card)
        memory = c_void_p(allocate(here, card, None, c_size_t(4096), 0, None))
        program = from_source(here, "kernel void one(global float *a) {{ a[5] = 1; }}")
        one = made("clCreateKernel", program, b"one")
        ok(extension("clSetKernelArgMemPointerINTEL", c_int, card)(one, 0, memory))
        begin = time.perf_counter()
        ok(cl.clEnqueueNDRangeKernel(
            queue, one, 1, None, byref(c_size_t(1)), None, 0, None, None))
        ok(cl.clFlush(queue))
        if {released}:
            ok(cl.clReleaseCommandQueue(queue))
        ok(extension("clMemBlockingFreeINTEL", c_int, card)(here, memory))
        print(json.dumps(time.perf_counter() - begin))
        """,
        XPURT_VIRTUAL_GPU_DELAY_US="300000",
    )
    assert seen(child) >= 0.3


def test_what_is_known_of_an_allocation() -> None:
    child = on_svm(
        """
        from ctypes import byref, c_int, c_size_t, c_uint, c_ulong, c_void_p
        from opencl_device import GPU, context, devices, extension
        gpu, = devices(GPU)
        here = context(gpu)
        def usm(size, alignment=0):
            code = c_int()
            allocate = extension("clDeviceMemAllocINTEL", c_void_p, gpu)
            return allocate(here, gpu, None, c_size_t(size), alignment, byref(code)), code
        def known(address, param, kind):
            out = kind()
            extension("clGetMemAllocInfoINTEL", c_int, gpu)(
                here, c_void_p(address), param, c_size_t(8), byref(out), None)
            return out.value
        free = extension("clMemFreeINTEL", c_int, gpu)
        address, _ = usm(1000, 1 << 20)
        inside = address + 999
        seen = [address % (1 << 20), known(inside, 0x419A, c_uint),
                known(inside, 0x419B, c_void_p) == address,
                known(inside, 0x419C, c_size_t),
                known(inside, 0x419D, c_void_p) == gpu.value,
                known(address + 1000, 0x419A, c_uint)]
        seen += [free(here, c_void_p(address + 8)), free(here, c_void_p(address)),
                 known(address, 0x419A, c_uint), known(address, 0x419C, c_size_t)]
        seen += [usm(0)[1].value, usm(64, 3)[1].value, usm(1 << 60)[1].value]
        print(json.dumps(seen))
        """
    )
    assert seen(child) == [
        *(0, 0x4198, True, 1000, True, 0x4196),
        *(-30, 0, 0x4196, 0),
        *(-61, -30, -61),
    ]
