"""The virtual GPU of the mode svm: no USM, and coarse-grained SVM that is strict."""

import signal

import pytest
from usm_on_svm.svm_child import on_svm, seen

# Two allocations a and b of 64 floats on the GPU, and a kernel that follows a pointer.
SVM = """
        import ctypes, time
        from ctypes import c_int, c_size_t, c_uint, c_ulong, c_void_p, byref
        from opencl_device import GPU, cl, context, devices, from_source, made, ok
        gpu, = devices(GPU)
        here, there = context(gpu), context(gpu)
        queue = made("clCreateCommandQueue", here, gpu, c_ulong(0))
        cl.clSVMAlloc.restype = c_void_p
        def svm(flags=1, of=here, alignment=0):
            return c_void_p(cl.clSVMAlloc(of, c_ulong(flags), c_size_t(256), alignment))
        a, b = svm(), svm()
        program = from_source(here, '''
            kernel void add(global const float *a, global float *b) {
              b[get_global_id(0)] = a[get_global_id(0)] + 1;
            }
            kernel void follow(global const ulong *a, global float *b) {
              b[get_global_id(0)] = ((global float *)a[0])[get_global_id(0)];
            }''')
        def kernel(name, *pointers):
            made_kernel = made("clCreateKernel", program, name.encode())
            for i, pointer in enumerate(pointers):
                ok(cl.clSetKernelArgSVMPointer(made_kernel, i, pointer))
            return made_kernel
        def run(of):
            code = cl.clEnqueueNDRangeKernel(
                queue, of, 1, None, byref(c_size_t(64)), None, 0, None, None)
            return code or cl.clFinish(queue)
        def copy(to, source, size=256):
            return cl.clEnqueueSVMMemcpy(
                queue, 1, to, source, c_size_t(size), 0, None, None)
        def fill(to, size=256):
            return cl.clEnqueueSVMMemFill(queue, to, byref(ctypes.c_float(7)),
                c_size_t(4), c_size_t(size), 0, None, None) or cl.clFinish(queue)
        def change(name, pointer):
            extra = (1, c_ulong(3)) if name == "Map" else ()
            size = (c_size_t(256),) if name == "Map" else ()
            code = getattr(cl, "clEnqueueSVM" + name)(
                queue, *extra, pointer, *size, 0, None, None)
            return code or cl.clFinish(queue)
        def settle():  # the pages are closed by callbacks, soon after the wait
            ok(cl.clFinish(queue))
            time.sleep(0.2)
        host = (ctypes.c_float * 64)(*range(64))
"""


def test_has_no_usm_without_the_layer() -> None:
    child = on_svm(
        """
        from opencl_device import DEVICE_SVM, GPU, cl, devices, info
        import ctypes, dpctl
        gpu, = devices(GPU)
        device = dpctl.SyclDevice("gpu")
        platform = ctypes.c_void_p.from_buffer_copy(info(gpu, 0x1031, 8))
        cl.clGetExtensionFunctionAddressForPlatform.restype = ctypes.c_void_p
        words = info(gpu, 0x1030, 4096).rstrip(b"\\0").decode().split()
        print(json.dumps([
            device.name, device.has_aspect_usm_device_allocations,
            "cl_intel_unified_shared_memory" in words, info(gpu, DEVICE_SVM, 8)[0],
            cl.clGetDeviceInfo(gpu, 0x4191, ctypes.c_size_t(8), None, None),
            cl.clGetExtensionFunctionAddressForPlatform(
                platform, b"clDeviceMemAllocINTEL"),
        ]))
        """,
        with_usm=False,
    )
    assert seen(child) == ["xpurt virtual GPU (svm)", False, False, 1, -30, None]


def test_copies_fills_and_kernels_work() -> None:
    child = on_svm(
        SVM
        + """
        ok(copy(a, host)), ok(run(kernel("add", a, b))), ok(fill(a, 8)), settle()
        ok(change("Map", b)), ok(change("Map", a))
        values = (ctypes.c_float * 64)
        print(json.dumps([list(values.from_address(b.value)[:3]),
                          list(values.from_address(a.value)[:3])]))
        """,
        with_usm=False,
    )
    assert seen(child) == [[1, 2, 3], [7, 7, 2]]


REFUSED = {
    "a copy of mapped memory": "copy(b, a)",
    "a kernel of mapped memory": "run(kernel('add', a, b))",
    "a fill of mapped memory": "fill(a)",
    "a kernel that gets memory of malloc": "run(kernel('add', b, host))",
    "a fill of memory of malloc": "fill(host)",
    "a kernel that gets null": "cl.clSetKernelArgSVMPointer(kernel('add'), 0, None)",
    "memory of another context": "copy(b, svm(of=there))",
    "a range beyond the end": "copy(b, host, 512)",
    "an unmap without a map": "change('Unmap', b)",
    "fine-grained memory": "0 if svm(flags=1 | 1 << 10).value else 1",
    "a large alignment": "0 if svm(alignment=4096).value else 1",
}


def test_refuses_what_coarse_grained_svm_forbids() -> None:
    child = on_svm(
        SVM
        + f"""
        ok(change("Map", a))
        found = {{what: eval(call) != 0 for what, call in {REFUSED!r}.items()}}
        ok(change("Unmap", a))
        ok(copy(b, a)), ok(run(kernel("add", a, b))), ok(fill(a))
        print(json.dumps(found))
        """,
        with_usm=False,
    )
    assert seen(child) == dict.fromkeys(REFUSED, True)
    assert "mapped for the host; unmap it first" in child.stderr


@pytest.mark.parametrize(
    ("steps", "code"),
    [
        ("settle()", -signal.SIGSEGV),
        ("ok(change('Map', a))", 0),
        ("ok(change('Map', a)), ok(change('Unmap', a)), settle()", -signal.SIGSEGV),
        ("ok(run(kernel('add', a, b))), settle()", -signal.SIGSEGV),
    ],
)
def test_the_host_needs_a_map(steps: str, code: int) -> None:
    child = on_svm(
        SVM
        + f"\n        {steps}\n        print(ctypes.c_float.from_address(a.value))\n",
        with_usm=False,
    )
    assert child.returncode == code, child.stderr


@pytest.mark.parametrize(("listed", "code"), [(True, 0), (False, -signal.SIGSEGV)])
def test_a_kernel_needs_a_list_of_what_is_no_argument(listed: bool, code: int) -> None:
    child = on_svm(
        SVM
        + f"""
        c = svm()
        ok(fill(c)), ok(copy(a, (c_void_p * 1)(c.value), 8)), settle()
        follow = kernel("follow", a, b)
        if {listed}:
            ok(cl.clSetKernelExecInfo(follow, 0x11B6, c_size_t(8), byref(c)))
        ok(run(follow)), ok(copy(host, b))
        print(json.dumps(host[5]))
        """,
        with_usm=False,
    )
    assert child.returncode == code, child.stderr
    assert child.stdout.strip() == ("7.0" if listed else "")
