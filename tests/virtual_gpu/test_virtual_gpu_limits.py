"""A virtual GPU that has less than the CPU: it reports it, and refuses more."""

import pytest
from gpu_child import on_gpu, start

REPORTED = """
    import dpctl, json
    gpu = dpctl.SyclDevice("gpu")
    print(json.dumps([gpu.max_work_group_size, gpu.local_mem_size,
                      list(gpu.sub_group_sizes), gpu.has_aspect_fp16,
                      gpu.has_aspect_usm_device_allocations,
                      gpu.native_vector_width_float]))
    """


def test_limits_are_reported() -> None:
    limits = "work_group=64,local_memory=16384,sub_groups=8+32,usm=0,vector_width=1"
    assert on_gpu(REPORTED, LIMITS=limits, FP16="0") == [
        64,
        16384,
        [8, 32],
        False,
        False,
        1,
    ]
    assert on_gpu(REPORTED)[3:5] == [True, True]  # type: ignore[index]
    assert on_gpu(REPORTED)[5] > 1  # type: ignore[index]


RUNS = """
    import dpctl, dpctl.memory, dpctl.program, json
    queue = dpctl.SyclQueue("gpu")
    memory = dpctl.memory.MemoryUSMDevice(4096, queue=queue)
    def runs(source, items, options=""):
        try:
            program = dpctl.program.create_program_from_source(queue, source, options)
        except dpctl.program.SyclProgramCompilationError:
            return "not built"
        kernel = program.get_sycl_kernel("k")
        try:
            queue.submit(kernel, [memory], [128], [items])
            queue.wait()
        except Exception:
            return "refused"
        return "runs"
    HEAD = "kernel void k(global float* p) "
    LOCAL = HEAD + "{ local float all[8192]; all[get_local_id(0)] = 1; barrier(1); p[0] = all[1]; }"
    def lanes(n):
        return f"__attribute__((intel_reqd_sub_group_size({n}))) {HEAD} {{ p[0] = 1; }}"
    """


def outcomes(*calls: str, **settings: str) -> object:
    script = RUNS + f"\n    print(json.dumps([{', '.join(calls)}]))\n"
    return on_gpu(script, **settings)


def test_a_larger_work_group_is_refused() -> None:
    calls = ('runs(HEAD + "{ p[0] = 1; }", 64)', 'runs(HEAD + "{ p[0] = 1; }", 128)')
    assert outcomes(*calls) == ["runs", "runs"]
    assert outcomes(*calls, LIMITS="work_group=64") == ["runs", "refused"]


def test_more_local_memory_is_refused() -> None:
    assert outcomes("runs(LOCAL, 64)") == ["runs"]
    assert outcomes("runs(LOCAL, 64)", LIMITS="local_memory=32767") == ["refused"]


def test_another_size_of_sub_groups_is_refused() -> None:
    calls = ("runs(lanes(16), 64)", "runs(lanes(32), 64)")
    assert outcomes(*calls) == ["runs", "runs"]
    assert outcomes(*calls, LIMITS="sub_groups=8+32") == ["refused", "runs"]
    assert outcomes(*calls, LIMITS="sub_groups=0") == ["not built", "not built"]


def test_a_newer_opencl_c_is_refused() -> None:
    call = 'runs(HEAD + "{ p[0] = 1; }", 64, "-cl-std=CL3.0")'
    assert outcomes(call) == ["runs"]
    assert outcomes(call, LIMITS="opencl=2.0") == ["not built"]


def test_without_fp16_half_is_a_type_of_storage() -> None:
    stores = '"kernel void k(global half* p) { vstore_half(vload_half(0, p), 1, p); }"'
    adds = '"kernel void k(global half* p) { const half x = p[0]; p[1] = x + x; }"'
    calls = (f"runs({stores}, 64)", f"runs({adds}, 64)")
    assert outcomes(*calls) == ["runs", "runs"]
    assert outcomes(*calls, FP16="0") == ["runs", "not built"]


@pytest.mark.one_in(3)
@pytest.mark.parametrize("limits", ["usm=1", "work_group", "cores=3", "usm=0;x"])
def test_an_unknown_limit_is_an_error(limits: str) -> None:
    child = start(
        "import xpurt.testing; xpurt.testing.virtual_gpu(limits=" + repr(limits) + ")"
    )
    assert f'limits="{limits}" is not possible' in child.stderr
