"""Test code for GPUs on machines that have none."""

from xpurt import usm_on_svm
from xpurt import virtual_gpu as layer


def virtual_gpu(
    strict: bool = True,
    delay_us: int = 0,
    memory_bytes: int | None = None,
    *,
    fp64: bool = True,
    fp16: bool = True,
    limits: str = "",
    coherent: bool = False,
    svm: bool = False,
    link_gb_per_s: float | None = None,
) -> None:
    """Gives this process, and the processes it starts, a simulated GPU.

    Test your GPU mapping in CI: with the virtual GPU, ``xpurt.set_xpu_mapping("GPU")``
    works on a machine with nothing but a CPU, and ``"explicit"`` and ``"AUTO"`` see two
    devices. It is a second device of type GPU, with its own platform, name and uuid,
    whose kernels run on the CPU; the CPU device stays as it was. Call it first, e.g. at
    the top of ``conftest.py``::

        import xpurt.testing

        xpurt.testing.virtual_gpu()
        xpurt.set_xpu_mapping("GPU")

    or set ``XPURT_VIRTUAL_GPU=strict`` before Python starts.

    ``strict=True`` behaves like a discrete GPU in the points that break programs. The
    host cannot read device memory: touching it ends the process with SIGSEGV. A kernel
    or fill is refused if it gets memory of ``malloc``, of another context or of another
    device, memory that was freed, or a range beyond its allocation; the error comes
    with a line on stderr that gives the reason. Kernels that find device pointers
    inside of structs or of memory do not work there. ``strict=False`` gives out
    ordinary addresses and checks nothing.

    ``delay_us`` makes the device slow: each kernel takes this many microseconds longer,
    one kernel after the other; neither the submitting thread nor a core is kept busy.
    ``memory_bytes`` makes it small: it limits device memory, shared memory and buffers
    together, so that running out of memory can be tested. ``fp64=False`` makes it a
    device without doubles, ``fp16=False`` one that stores half precision and does not
    compute in it. ``limits`` takes other things away, as a list separated by commas:
    ``usm=0`` (unified shared memory), ``compiler=0`` (the compiler of OpenCL C),
    ``address_bits=32``, ``opencl=1.2`` (the version), ``vendor_id=4318`` (the PCI
    vendor, which is NVIDIA here), ``sub_groups=0`` or
    ``sub_groups=8+32`` (the sizes in lanes), ``work_group=64`` (the largest work-group),
    ``local_memory=16384`` (bytes). ``coherent=True`` makes it an integrated GPU that shares the
    host's memory: its kernels take any pointer, and nothing is refused. ``svm=True``
    makes it a GPU whose OpenCL driver has coarse-grained shared virtual memory (SVM) and
    no unified shared memory, as those of several vendors; xpurt runs on it by its layer
    for such drivers (``XPURT_USM_ON_SVM``). ``link_gb_per_s`` limits copies between its
    memory and the host's to this rate in gigabytes per second.

    It cannot reproduce a real GPU's speed, its driver's bugs, and errors of its
    compiler.

    Raises RuntimeError if SYCL has already listed devices in this process, and
    ValueError for a negative delay, a memory of 0 bytes, a link of 0, an unknown limit, or
    ``coherent`` with ``svm``.
    """
    layer.activate(
        strict,
        delay_us,
        memory_bytes,
        fp64=fp64,
        fp16=fp16,
        limits=limits,
        coherent=coherent,
        svm=svm,
        link_gb_per_s=link_gb_per_s,
    )
    if svm:
        usm_on_svm.activate()


def fail_virtual_gpu(fails: bool = True, *, running: bool = False) -> None:
    """Makes the virtual GPU fail: it accepts no more kernels, copies or fills, like a
    device that was reset or unplugged; ``fails=False`` repairs it. With
    ``running=True`` it still accepts kernels, but loses them, so that waiting for them
    raises RuntimeError.

    Test the reaction of your program: under "AUTO" the device is removed, and its work
    is done on other devices if the operands are still valid there; under "GPU" an op
    raises RuntimeError. ``XPURT_VIRTUAL_GPU_FAIL_AFTER=n`` makes it fail after n
    kernels.

    Raises RuntimeError if this process has no virtual GPU.
    """
    layer.fail(fails, running=running)


def delay_virtual_gpu(delay_us: int) -> None:
    """Makes the virtual GPU slower or faster while the program runs: each kernel that
    is submitted from now on takes this many microseconds longer; 0 ends it.

    Test the reaction of your program to a device that other processes use: under "AUTO"
    work leaves a device that got slower within some calls.

    Raises ValueError for a negative number, and RuntimeError if this process has no
    virtual GPU.
    """
    layer.delay(delay_us)
