"""The types of the extension's functions; their bodies are in csrc/python/module.cpp."""

from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from torch import Event, Generator, Tensor, dtype

from xpurt._C import testing as testing
from xpurt._C.memory import *  # noqa: F403
from xpurt._C.planning import *  # noqa: F403

torch_version: str
sycl_version: str  # of the SYCL headers, as "20250301"

def set_placement_resolver(resolver: Callable[[], object]) -> None:
    """`resolver` is called at the first use of a device, and must install a placement.

    It is called with the GIL held and no lock of the extension.
    """

def install_placement(
    mapping: str,
    ordinals: Sequence[Sequence[int]],
    remark: str = "",
    overflows: bool = False,
) -> None:
    """Installs the ``sycl::device`` objects at these addresses, which are copied, by
    ordinal. `remark`, `overflows`: see `xpurt.mapping.Placement`."""

def check_locks(on: bool) -> None:
    """Whether a lock that is taken out of order raises RuntimeError. See host/mutex.h."""

def locks_out_of_order() -> int:
    """How many were, since the process began."""

def open_placement() -> None: ...
def refuse_forks() -> None: ...
def uninstall_placement() -> tuple[int, int]:
    """The storages that hold the placement, and their bytes; if there are none, the
    placement is removed."""

def placement_epoch() -> int: ...
def live_memory() -> tuple[int, int]:
    """The number of live storages, and their bytes."""

def device_count() -> int: ...
def device_uuid(device: int) -> bytes:
    """The driver's uuid of the ``sycl::device`` at this address: 16 bytes or none."""

def register_fallbacks() -> None: ...
def fallbacks() -> object: ...  # a capsule "xpurt.fallbacks"
def prefer_cpu_kernel(name: str, overload: str, /) -> bool:
    """Makes xpu run an op of another library by its CPU kernel, although it has a
    composite kernel. False if the op is not there, has no CPU kernel, or one for xpu."""

def opencl_devices() -> list[dict[str, Any]]:
    """The devices as OpenCL lists them: the fields of `OpenCLDevice` in C++."""

def opencl_handle(device: int) -> int:
    """The ``cl_device_id`` of the ``sycl::device`` at this address; 0 if its backend is
    not OpenCL."""

def define_backend(make_inner: Callable[..., Any]) -> Any:
    """The class `ProcessGroupXCCL`. `make_inner` takes a store, a rank, the number of
    ranks and a timeout, and returns a c10d backend for CPU tensors."""

def require_fused_attention(required: bool) -> None:
    """Whether attention of tensor subclasses has to be the fused op; another form is an
    error then."""

def in_bad_fork() -> bool: ...
def init() -> None:
    """Initializes the devices, as their first use does; raises after a fork."""

def drain_autograd_threads() -> None:
    """Returns when autograd's threads have released all that they worked on."""

def run_backward(
    run: Callable[..., Any], arguments: tuple[Any, ...], options: dict[str, Any]
) -> Any:
    """Calls `run`, the engine's. Its backward runs in this thread, where one ordinal is
    behind the mapping."""

def set_backward_in_calling_thread(on: bool) -> None: ...
def shown_multithreading() -> bool:
    """What ``torch.autograd.is_multithreading_enabled`` is for a program."""

def show_multithreading(enabled: bool) -> bool:
    """Sets it within `run_backward`; False if the engine's own flag is to be set."""

def device_facts(index: int) -> list[dict[str, Any]]:
    """What the drivers report of each device of an ordinal; -1 is the current one."""

def current_device() -> int: ...
def set_device(index: int) -> None: ...
def exchange_device(index: int) -> int:
    """Returns the device that was current. A negative `index` changes nothing."""

def maybe_exchange_device(index: int) -> int: ...
def can_access_peer(device: int, peer: int) -> bool: ...
def default_generator(index: int) -> Generator: ...
def priority_range() -> tuple[int, int]: ...
def stream_priority(stream_id: int, device_index: int) -> int: ...
def current_stream(index: int) -> tuple[int, int, int]:
    """Stream id, device index, device type."""

def current_queue(index: int) -> int:
    """The address of the ``sycl::queue`` of the current stream."""

def set_stream(stream_id: int, device_index: int, device_type: int) -> None: ...
def external_stream(queue: int, index: int) -> tuple[int, int, int]: ...
def ordinal_of_queue(queue: int) -> int: ...
def queue_capsule(stream_id: int, device_index: int) -> object: ...
def synchronize_device(index: int) -> None: ...
def sleep(cycles: int) -> None:
    """Keeps the current stream busy for so many cycles of the highest clock rate of its
    device, and returns at once. A device that reports no clock rate counts as one of
    1 GHz. Raises ValueError if `cycles` is negative."""

def event_elapsed_ms(start: Event, end: Event) -> float: ...
def memory_stats(index: int) -> dict[str, dict[str, dict[str, int]]]: ...
def empty_cache() -> None: ...
def reset_peak_memory_stats(index: int) -> None: ...
def reset_accumulated_memory_stats(index: int) -> None: ...
def memory_info(index: int) -> tuple[int, int]:
    """Free and total bytes, counted over all processes."""

def synchronize_all() -> None: ...
def set_active(active: bool) -> None: ...
def is_active() -> bool: ...
def hide_accelerator() -> None:
    """PyTorch's choice of an accelerator passes over xpu from now on."""

def is_cuda_build() -> bool: ...
def yield_cuda_to_xpu() -> None: ...
def set_guard_device_count(count: int) -> None: ...
def device_costs(index: int) -> list[tuple[float, float, float, float, float]]:
    """The rows of set_device_costs(); empty if there are none."""

def set_device_costs(
    index: int, costs: Sequence[tuple[float, float, float, float, float]]
) -> None:
    """Rows of `xpurt.mapping.auto.DeviceCost.row`, by position in the ordinal."""

def replica_counts(index: int) -> list[tuple[int, int, int, int]]:
    """(bytes resident, moved to, moved from, evicted) of each device of xpu:index."""

def set_preference(kind: str) -> str:
    """Sets this thread's preferred kind of device; returns the previous one."""

def exchange_lazy_copies(value: int) -> int:
    """Sets lazy copies of this thread: 1, 0, or -1 for the setting of the process.
    Returns the previous value."""

def set_lazy_copies_of_process(on: bool) -> None: ...
def is_lazy(tensor: Tensor) -> bool:
    """Whether its memory may be shared with lazy copies now."""

def never_copy_lazily(tensor: Tensor) -> None: ...
def guard_raw_pointers(on: bool, never_lazily: bool) -> None:
    """Whether PyTorch's functions that give the address of a tensor's memory make its
    home copy valid and keep it there, and, if `never_lazily`, also exclude its storage
    from lazy copies. Raises RuntimeError if PyTorch lacks one of these functions."""

def share_with_xpu(tensor: Tensor, index: int) -> Tensor: ...
def share_with_cpu(tensor: Tensor) -> Tensor: ...
def move_to_memory_of(tensor: Tensor, cpu: Tensor) -> None: ...
def number_of_message(text: str) -> int:
    """The number that a kernel reports if the assertion with this message fails."""

def lender_of(tensor: Tensor) -> Tensor | None:
    """The bytes of the CPU tensor whose memory an xpu tensor has."""

def host_reads(index: int) -> bool:
    """Whether the host reads and writes the memory of xpu:index in place."""

def host_computes(index: int) -> bool:
    """Whether it is also meant to compute there: no GPU does the work, as it does if
    the mapping overflows."""

def is_host(index: int) -> bool:
    """Whether xpu:index is one CPU device, whose memory the host reads in place."""

def make_launcher(
    *,
    key: str,
    arguments: str,
    group: tuple[int, int, int],
    lanes: bool,
    faults: bool,
    flops: float,
    sizes: Sequence[int],
    planned: int = -1,
) -> Callable[..., None]:
    """A function that submits a compiled kernel: see rows/compiled_kernel.h. It takes the
    arguments, and then three sizes of the range if `sizes` is empty."""

def build_launcher(launcher: Callable[..., None], index: int) -> None:
    """Builds the kernel of a function of make_launcher() for the home device of
    xpu:index. Raises KernelBuildError."""

def allocate(
    sizes: tuple[int, ...], strides: tuple[int, ...], dtype: dtype, index: int
) -> Tensor:
    """An xpu tensor without contents."""

class HostCode:
    """Compiled code for CPU tensors, called with tensors of xpu:index.

    function: takes a list of tensors and other values, which it may clear, and returns a
    list or a tuple. written: positions of the inputs that it writes to, ascending.
    on_device: for each output, whether it becomes an xpu tensor. returned: for each
    output, the position of the input that it may be, or -1.
    """

    _boxed_call: bool
    def __init__(
        self,
        function: Callable[[list[Any]], Any],
        index: int,
        written: Sequence[int],
        on_device: Sequence[bool],
        returned: Sequence[int],
    ) -> None: ...
    def __call__(self, inputs: list[Any]) -> list[Any]:
        """Raises RuntimeError if the host cannot read the memory of xpu:index (any
        more), for a tensor of another ordinal, and in a capture."""

def around_usm(
    data: int,
    sizes: Sequence[int],
    strides: Sequence[int],
    dtype: dtype,
    index: int,
    owner: object,
) -> Tensor: ...
def ordinal_of_usm(pointer: int, context: int) -> int:
    """The ordinal that the USM pointer belongs to, or -1. `context`: the address of the
    ``sycl::context`` that it should belong to, or 0."""

def empty_from_dlpack(capsule: object) -> Tensor | None:
    """The xpu tensor of a DLPack capsule without elements or memory. None for any other
    capsule, which is not changed."""

def positions_of(tensor: Tensor) -> list[int]:
    """The positions, in the tensor's ordinal, of the devices with a valid copy."""

def escape(tensor: Tensor) -> None:
    """Makes the home copy valid and keeps the storage there from now on."""

# Rows and kernels: csrc/python/bind_kernels.cpp

def set_source_callbacks(
    source: Callable[[str, Any], tuple[str, str]],
    failure: Callable[[str, str, str, str], NoReturn],
) -> None:
    """`source` returns the name and the source of the kernel for a key; `failure`
    raises for a device, name, source and build log. Both are kept for the process.
    """

def meta_results(
    name: str, overload: str, *arguments: Any, **named: Any
) -> list[Tensor]:
    """Meta tensors like the op's results: sizes, strides and dtypes. Raises what the op
    raises for arguments that do not fit."""

def set_form_maker(maker: Callable[[int, str, str], str]) -> None:
    """`maker` defines the op that computes an overload of a decomposed row. It takes
    the row's number, the name and the overload, and returns the op's name. It is kept
    for the process.
    """

def set_binary_callbacks(
    load: Callable[[bytes], bytes], store: Callable[[bytes, bytes], None]
) -> None:
    """Stores the drivers' binaries between processes, by an identity. `load` returns
    b"" for a missing one. Both functions are kept for the process.
    """

def bound_overloads() -> list[tuple[int, str, str]]: ...
def add_rows(rows: Sequence[dict[str, object]]) -> None:
    """Rows from `xpurt.kernels.rows.table.described`; once per process."""

def add_wider_types(rows: Sequence[dict[str, object]]) -> None:
    """Rows from `xpurt.kernels.rows.wider_types`; once per process."""

def set_kernel_policy(policy: str) -> None: ...
def kernel_policy() -> str: ...

# Ops: csrc/python/bind_ops.cpp

def op_report() -> list[tuple[str, str, str, int, int, float]]:
    """Op, tier, device, calls, bytes copied, seconds."""

def reset_op_report() -> None: ...
def set_fallback_mode(mode: str) -> None: ...

# Kernels of CPU tensors: csrc/python/bind_cpu_kernels.cpp

def set_cpu_kernels(
    mode: str, ops: Sequence[tuple[str, str, bool]], cached_from_bytes: int
) -> None:
    """ops: (name, overload, whether numbers of floating point tell calls apart)."""

def cpu_kernels() -> str: ...
def ordinal_of_host() -> int:
    """The first ordinal that is one CPU device in the host's memory, or -1."""

def blocks_of_cpu_tensors() -> int:
    """The blocks of xpu memory that CPU tensors own."""

# Learning: csrc/python/bind_learner.cpp

def learns() -> bool:
    """Whether times of the running program influence the choices."""

# The choice of tiers: csrc/python/bind_policy.cpp

def set_cost_curves(
    index: int,
    position: int,
    curves: Sequence[tuple[str, str, str, Sequence[tuple[float, float, float]]]],
) -> None:
    """Sets the costs of ops on a device: class, letter of the type, layout, and points
    of (elements, us native, us by a kernel). Learned costs are dropped."""

def set_learning(on: bool) -> None: ...
def learning() -> bool: ...
def set_deterministic(on: bool) -> None: ...
def use_cost_curves(index: int) -> None:
    """The curves of `set_cost_curves` override the costs that were set last."""

def begin_explaining() -> int:
    """The number to pass to `end_explaining`. Several explanations may be open."""

def end_explaining(
    begin: int,
) -> list[
    tuple[
        str,
        str,
        str,
        str,
        float,
        list[tuple[str, bool, float, float, float, float, bool, int, float]],
    ]
]:
    """(op, device, tier, why, us measured, [(device, native, us until it is free, us of
    copies, us of the work, us until it is done, is held back, timed calls, us that these
    took), ...]) of each op since `begin_explaining`."""

def device_report() -> list[
    tuple[str, int, int, int, int, float, float, float, float, int]
]:
    """(device, moves, bytes moved, shards of split ops, timed samples, us predicted for
    these, us measured, us predicted for all, us gained by all, bytes evicted)."""

def reset_device_report() -> None: ...
def stop_builds() -> None:
    """Drops the builds in the background, and waits for the running one."""

def partition_proportions(
    reads: Sequence[Tensor], flops: float, bytes: float
) -> list[float]: ...
