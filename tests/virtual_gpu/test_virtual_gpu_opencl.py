"""The virtual GPU through the OpenCL API, beneath SYCL."""

import pytest
from gpu_child import MODES, on_gpu


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
    elapsed_ns = on_gpu(
        """
        import json
        from opencl_device import *
        (gpu,) = devices(GPU)
        where = context(gpu)
        properties = (c_ulong * 3)(0x1093, PROFILING, 0)
        queue = made("clCreateCommandQueueWithProperties", where, gpu, properties)
        kernel = made("clCreateKernel", from_source(where, "kernel void none() {}"), b"none")
        def elapsed_ns():
            event, start, end = c_void_p(), c_ulong(), c_ulong()
            ok(cl.clEnqueueNDRangeKernel(queue, kernel, 1, None, byref(c_size_t(1)), None,
                                         0, None, byref(event)))
            ok(cl.clWaitForEvents(1, byref(event)))
            for out, what in ((start, PROFILING_START), (end, PROFILING_END)):
                ok(cl.clGetEventProfilingInfo(event, what, c_size_t(8), byref(out), None))
            return end.value - start.value
        # No kernel starts before its submission, which may be late on a busy machine.
        print(json.dumps(max(elapsed_ns() for _ in range(5))))
        """,
        DELAY_US="20000",
    )
    assert elapsed_ns >= 0.9 * 20_000_000
