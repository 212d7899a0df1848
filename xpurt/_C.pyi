"""The types of the extension's functions; their bodies are in csrc/python/module.cpp."""

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, NoReturn

from numpy.typing import ArrayLike
from torch import Event, Generator, Tensor, dtype

torch_version: str
sycl_version: str  # of the SYCL headers, as "20250301"

def set_placement_resolver(resolver: Callable[[], object]) -> None:
    """`resolver` is called at the first use of a device, and must install a placement.

    It is called with the GIL held and no lock of the extension.
    """

def install_placement(
    mapping: str, ordinals: Sequence[Sequence[int]], remark: str = ""
) -> None:
    """Installs the ``sycl::device`` objects at these addresses, which are copied, by
    ordinal. `remark`: see `xpurt.mapping.Placement`."""

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

# Pools, snapshots, history: csrc/python/bind_snapshot.cpp

def memory_snapshot() -> list[dict[str, Any]]:
    """Every segment with its blocks, as returned by `torch.xpu.memory_snapshot`."""

def memory_snapshot_with_traces(pool: tuple[int, int]) -> dict[str, Any]:
    """The segments of one pool, or of all for (0, 0), and each device's history."""

def record_memory_history(
    enabled: str | None,
    context: str | None,
    stacks: str,
    max_entries: int,
    clear_history: bool,
    skip_actions: list[str],
) -> None:
    """See `torch.xpu.memory._record_memory_history`."""

class MemorySource:
    """Two C functions that allocate and free memory, by address. Never freed."""

    def __init__(self, allocate: int, free: int) -> None: ...

class MemoryPool:
    """A private pool of the current device."""

    def __init__(
        self, source: MemorySource | None, made_by_user: bool, use_on_oom: bool
    ) -> None: ...
    @property
    def id(self) -> tuple[int, int]: ...
    @property
    def source(self) -> MemorySource | None: ...
    def use_count(self) -> int: ...

def set_memory_caching(on: bool) -> None:
    """Off: each tensor has an allocation of its own. Before xpu has memory."""

def set_memory_source(source: MemorySource | None) -> None:
    """Takes all memory from `source`; RuntimeError if some has been allocated."""

def memory_source() -> MemorySource | None: ...
def begin_allocate_to_pool(
    device: int, pool: tuple[int, int], this_thread_only: bool
) -> None:
    """Directs allocations to segments of this pool alone, until the end."""

def end_allocate_to_pool(device: int, pool: tuple[int, int]) -> None: ...
def release_pool(device: int, pool: tuple[int, int]) -> None:
    """Undoes one `begin_allocate_to_pool`; RuntimeError if there was none."""

# XPU graphs: csrc/python/bind_graph.cpp

class Graph:
    """One capture and its replays; see `torch.xpu.XPUGraph`.

    NotImplementedError if the current device can't record commands, or the ordinal has
    several devices.
    """

    def __init__(self, keep_graph: bool = False) -> None: ...
    def capture_begin(self, pool: tuple[int, int] | None = None) -> None: ...
    def capture_end(self) -> None: ...
    def instantiate(self) -> None: ...
    def register_generator_state(self, state: Generator) -> None:
        """TypeError or RuntimeError for a generator of another device, and in a
        capture. A replay advances every generator that draws in the capture."""

    def replay(self) -> None: ...
    def reset(self) -> None: ...
    def pool(self) -> tuple[int, int]: ...
    def enable_debug_mode(self) -> None: ...
    def debug_dump(self, debug_path: str) -> None: ...
    def raw_xpu_graph(self) -> int:
        """The address of the modifiable ``command_graph``."""

    def raw_xpu_graph_exec(self) -> int:
        """The address of the executable ``command_graph``."""

def graph_pool_handle() -> tuple[int, int]: ...
def is_current_stream_capturing() -> bool: ...

# The allocator: csrc/python/bind_allocator.cpp

def memory_fraction(device: int) -> float: ...
def set_memory_fraction(device: int, fraction: float) -> None:
    """The share of the device's memory, 0 to 1, that this process may reserve.

    ValueError if it is out of range.
    """

def host_memory(root: str = "") -> tuple[int, int, int]:
    """Total and free memory for this process, and free swap, in bytes."""

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

# Which device runs an op, and in which form: csrc/python/bind_planning.cpp

class TwoForms:
    """Chooses for the calls of one class between two forms: see Note [Two forms] in
    csrc/schedule/planning/two_forms.h. False is the first form, which is in use at the
    start, and True the second one. Not for calls of results that have to repeat: ask
    `learns` first."""

    most_calls: ClassVar[int]  # of the first rounds
    def __init__(self, price_us: float, lost_us: float, ends: bool) -> None:
        """price_us: of trying the second form. lost_us: what a call is expected to lose
        without it; 0: a whole call. `ends`: the first rounds decide for good."""

    def next(self) -> tuple[bool, bool]:
        """The form of the next call, and whether `record` wants its time, from an idle
        device until it is idle again."""

    def record(self, second: bool, us: float) -> None: ...
    def refuse(self) -> None:
        """The second form cannot run these calls."""

    @property
    def in_use(self) -> bool: ...
    @property
    def decided(self) -> bool | None:
        """The form in use once it stays; None before."""

    def least_us(self, second: bool) -> float:
        """The least time of the newest rounds; 0: not measured."""

    @property
    def lost_us(self) -> float:
        """As given, or as measured; 0: not known yet."""

class OnlinePolicy:
    """Earliest finish, never far behind the best device alone; see
    csrc/schedule/planning/online_policy.h. Arrays hold one number per device: the time when its
    queue is empty, the time when the op's inputs are there, the op's cost (infinite: it
    cannot run there), the cost of moving its results to another device. Raises
    ValueError."""

    def __init__(self, devices: int) -> None: ...
    def remember(self, work: Sequence[float]) -> None:
        """Adds the time that each device alone takes for work seen before."""

    def choose(
        self,
        free_at: ArrayLike,
        ready_at: ArrayLike,
        cost: ArrayLike,
        leave: ArrayLike,
        now: float = 0.0,
        is_idle: bool = False,
    ) -> int:
        """`is_idle`: all submitted work is done at `now`."""

    @property
    def best_alone(self) -> int: ...
    @property
    def alone(self) -> list[float]:
        """The time at which each device alone would have finished everything so far."""

    def choice_ns(self, calls: int) -> float: ...

class Parallelism:
    """The average parallelism of a program's long ops; see
    csrc/schedule/planning/parallelism.h. A read is a value's number and its version."""

    def __init__(self) -> None: ...
    def add(
        self, cost_us: float, reads: Sequence[tuple[int, int]], blocks: bool = False
    ) -> float:
        """Adds an op. Returns when its results are there, on the longest path.
        `blocks`: it blocks the host until then."""

    def add_written(self, value: int, version: int, end_us: float) -> None: ...
    def add_result(self, value: int, version: int, end_us: float) -> None:
        """The same of a result, which may have been recorded as written."""

    def join(self) -> None:
        """The host has waited for what came before."""

    @property
    def average(self) -> float: ...

class Overlap:
    """What home's queue is worth beside other devices; see
    csrc/schedule/planning/parallelism.h. `others`: ops that all other devices compute in
    a microsecond."""

    def __init__(self, kernel_us: float, native_us: float, others: float) -> None: ...
    def us(self, parallelism: float) -> float:
        """What an op takes of the program's time on home's queue."""

    def prefers_queue(self, parallelism: float, is_in_use: bool) -> bool: ...
    def always_blocks(self) -> bool: ...

class CopyRegret:
    """When to copy operands that stay; see csrc/schedule/planning/copy_regret.h."""

    def __init__(self) -> None: ...

class Baseline:
    """Whether a program runs faster with all devices than on the best one alone; see
    csrc/schedule/planning/baseline.h."""

    def __init__(self) -> None: ...
    def add(self, kind: int, alone_us: float, elsewhere: bool, now: float) -> bool: ...
    @property
    def is_alone(self) -> bool: ...
    @property
    def ratio(self) -> float: ...

class LostDivision:
    """When to divide an op again though its shards were slow; see
    csrc/schedule/planning/lost_division.h."""

    def __init__(self) -> None: ...
    def is_due(self, us: float, divided_us: float, calls: float = 1.0) -> bool: ...
    def pay_off(self) -> None: ...

def divide_again(
    launch: Sequence[float],
    of_shards: Sequence[float],
    of_whole_calls: Sequence[float],
    us: float,
    lost: LostDivision,
) -> list[float]:
    """The proportions of a division to try though the times of shards speak against it;
    empty: none is due."""

def whole_us_of(shard_us: float, setup_us: float, proportion: float) -> float: ...

class Boundary:
    """Where the ops of a chain are divided; see csrc/schedule/planning/boundary.h."""

    def __init__(self) -> None: ...

def units_for(proportions: Sequence[float], units: int) -> list[int]:
    """The whole units of each device, such that the last one is done as early as
    possible. The proportions add up to 1."""

def divide_call(
    queue: Sequence[float],
    launch: Sequence[float],
    copies: Sequence[float],
    whole: Sequence[float],
    alone_us: float,
    in_shards: bool,
    regret: CopyRegret,
    boundary: Boundary,
    sums: Sequence[float] = (),
) -> list[float]:
    """The proportions in which the scheduler divides an op; empty: it does not. Times by
    device: until its queue is free, of a launch, of copies of operands that every shard
    reads, and of the whole op (infinite: it cannot run there). `alone_us`: when the best
    device alone is done. `in_shards`: a divided op has left the operands on the devices.
    `sums`: of adding a device's partial result; `launch` then includes its copy to home.
    Raises ValueError."""

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

def device_report() -> list[tuple[str, int, int, int, int, float, float, float, float]]:
    """(device, moves, bytes moved, shards of split ops, timed samples, us predicted for
    these, us measured, us predicted for all, us gained by all)."""

def reset_device_report() -> None: ...
def stop_builds() -> None:
    """Drops the builds in the background, and waits for the running one."""

def partition_proportions(
    reads: Sequence[Tensor], flops: float, bytes: float
) -> list[float]: ...

class testing:
    """A submodule for tests, and for benchmarks of the choice."""

    @staticmethod
    def preferences_held() -> int:
        """For tests: the number of preferences in force, in all threads."""

    @staticmethod
    def set_split_proportions(
        proportions: Sequence[float], least_bytes: float = 0, unit: int = 0
    ) -> None:
        """For tests: splits all work of this many bytes, by position, into shards of
        multiples of `unit` rows; no proportions end it."""

    @staticmethod
    def shards_run(index: int) -> list[int]: ...
    @staticmethod
    def transfers_to(index: int) -> list[tuple[int, int]]:
        """The copies of storages to each device so far: their number, and bytes."""

    @staticmethod
    def replica_bytes(index: int, position: int) -> int: ...
    @staticmethod
    def empty_pool(pool: tuple[int, int]) -> None: ...
    @staticmethod
    def releasing_bytes(device: int) -> int:
        """For tests: the bytes of segments that are being returned to the driver."""

    @staticmethod
    def device_of_pointer(address: int) -> int:
        """The ordinal whose memory contains the address, or -1."""

    @staticmethod
    def block_of_pointer(address: int) -> tuple[int, int]:
        """Address and bytes of the block in use around the address, or (0, 0)."""

    @staticmethod
    def is_pinned_pointer(address: int) -> bool: ...
    @staticmethod
    def raw_allocate(size_bytes: int) -> int:
        """The address of memory of the current device and stream, without a tensor."""

    @staticmethod
    def raw_free(address: int) -> None: ...
    @staticmethod
    def raw_record_stream(address: int, stream_id: int, device: int) -> None: ...
    @staticmethod
    def count_frees() -> int:
        """The number of blocks freed since the first call."""

    @staticmethod
    def time_allocations(device: str, size_bytes: int, rounds: int) -> float:
        """Nanoseconds of this thread's time for one allocation and its free."""

    class BlockPool:
        """The pool of one stream, over made-up addresses: for tests."""

        reserved: int
        inactive_split: tuple[int, int]
        def __init__(self, large: bool) -> None: ...
        def take(self, size_bytes: int) -> int: ...
        def give_back(self, address: int) -> None: ...
        def keep(self, address: int) -> bool:
            """Returns the block to the pool as it is; False if it is given back."""
        def merge_kept(self) -> None: ...
        def drop_free_segments(self) -> int: ...
        def segments(self) -> list[list[tuple[int, int, bool]]]: ...

    @staticmethod
    def take_locks(ranks: list[str], without_gil: bool = False) -> None:
        """Takes locks of these ranks, each under those before it, and gives them up."""

    @staticmethod
    def build_kernel(index: int, entry: str, source: str) -> None:
        """Builds OpenCL C for the home device of xpu:index, and drops it."""

    @staticmethod
    def force_vector_width(width: int) -> None:
        """For tests: replaces the native vector width of floats that devices report. It
        selects the kernel of matrix products; 0 restores the reported one."""

    @staticmethod
    def built_kernels() -> int:
        """The number of kernels that this process has made."""

    @staticmethod
    def loaded_kernels() -> int:
        """The number of these that came from a binary of an earlier process."""

    @staticmethod
    def onednn_plans(index: int) -> tuple[int, int]:
        """The number of oneDNN's primitives, with reorders around them, that are kept
        for the home device of xpu:index, and the largest number."""

    @staticmethod
    def ops_with_cpu_kernels() -> list[str]:
        """The ops whose CPU tensors rows may compute now: "aten::add.Tensor"."""

    class PairedChoice:
        """For tests: see Note [Paired calls]."""

        def next(self, key: int, build_us: float) -> tuple[bool, bool]:
            """Whether the row runs the call, and whether the call is timed."""
        def record(self, key: int, by_row: bool, us: float) -> None: ...
        def refuse(self, key: int) -> None: ...

    @staticmethod
    def activation_names() -> list[str]: ...
    @staticmethod
    def unboxed_ops() -> list[str]:
        """Ops registered with their own signature: "aten::add.Tensor"."""

    @staticmethod
    def direct_ops() -> list[str]:
        """Those of them that have a direct form."""

    @staticmethod
    def set_direct_forms(on: bool) -> None:
        """If off, these ops run as those without one."""

    @staticmethod
    def fallback_mode() -> str: ...
    @staticmethod
    def copy_verdict(name: str, overload: str) -> tuple[str, str]:
        """Whether an op may run on copies: "trusted", "checked", "refused" or "never";
        and the reason why it may not. See csrc/native/unsafe_copies.h. Raises
        RuntimeError for an unknown op."""

    @staticmethod
    def check_trusted_copies(value: bool) -> None: ...
    @staticmethod
    def set_host_accessible(index: int, value: bool) -> None: ...
    @staticmethod
    def expected_costs(
        index: int, cost_class: str, letter: str, layout: str, elements: float
    ) -> tuple[float, float] | None:
        """Microseconds (native, by a kernel) on the home device; None: not measured."""

    @staticmethod
    def learned_calls() -> list[
        tuple[str, int, str, str, int, int, int, list[int], list[float]]
    ]:
        """Op, ordinal, letter, layout, log2 of the elements, calls to the next timed
        sample, the candidate in use at home, timed samples by candidate, measured over
        expected time by candidate. Candidates are kernels by position, then the native
        kernel."""

    @staticmethod
    def forget_statistics() -> None: ...
    @staticmethod
    def set_learning_bias(native_us: float, kernel_us: float) -> None:
        """For tests: a time added to every time that is learned from."""

    @staticmethod
    def choice_ns(
        name: str, overload: str, operands: Sequence[Tensor], calls: int
    ) -> float:
        """For benchmarks: nanoseconds of one choice of a tier."""

    class Learner:
        """For tests: chooses and learns in one bucket of calls, by the times that it
        gets."""

        def __init__(
            self, native_us: float, kernel_us: float, is_built: bool = False
        ) -> None: ...
        def next(self, build_us: float) -> tuple[bool, bool, int]:
            """Runs the kernel, is timed, calls that follow in the same way."""

        def record(self, kernel: bool, us: float, stall_us: float) -> None: ...
        @property
        def kernel(self) -> bool: ...

    @staticmethod
    def spent_before_trial(
        cost_us: float, now_us: float, build_us: float, is_new: bool, may_divide: bool
    ) -> float: ...

    class DevicePrior:
        """For tests: see Note [Device prior]."""

        def __init__(self) -> None: ...
        def record(self, op: int, measured_us: float, expected_us: float) -> None: ...
        def corrected_us(self, expected_us: float) -> float: ...

    class Slowdown:
        """For tests: see Note [Slowdown]."""

        def __init__(self) -> None: ...
        def record(
            self, ratio: float, measured_us: float, is_known: bool = True
        ) -> bool:
            """Returns whether choices may have changed."""

        def suspect(self) -> bool:
            """Returns whether the sign counts."""

        @property
        def factor(self) -> float: ...
        @property
        def wants_samples(self) -> bool: ...

    class LearnedCost:
        """For tests: see Note [Learned costs]."""

        def __init__(self) -> None: ...
        def record(self, time: float) -> None: ...
        def estimate(self, expected: float) -> float: ...
        def undisturbed(self, expected: float) -> float: ...
        @property
        def count(self) -> int: ...
        @property
        def is_known(self) -> bool: ...
        @property
        def has_converged(self) -> bool: ...

    class Backlog:
        """For tests: see Note [Predicted clocks]. Storages are small numbers."""

        def __init__(self, devices: int) -> None: ...
        def free_us(self, position: int, now: float) -> float: ...
        def written_us(self, storage: int, now: float) -> float: ...
        def book(self, position: int, end: float) -> None: ...
        def book_write(self, storage: int, end: float) -> None: ...
        def take_back(self, position: int, begin: float, end: float) -> None: ...
        def correct(
            self, position: int, end: float, now: float, has_ended: bool
        ) -> None: ...
        def clear(self) -> None: ...

    @staticmethod
    def builds_pending() -> int:
        """The number of kernels that are being built, or queued, in the background."""

    @staticmethod
    def hold_alone(position: int | None) -> None:
        """Holds all work of the current ordinal to one position, as if the program was
        measured to be faster there; None ends it."""

    @staticmethod
    def stop_clock(us: float | None) -> None:
        """The scheduler's clock stands at this time; None: it runs."""

    @staticmethod
    def left_out_us() -> float:
        """Microseconds in which the program had waited and gave no work to the devices
        of the current ordinal."""

    @staticmethod
    def decision_ns(
        name: str, overload: str, operands: Sequence[Tensor], calls: int
    ) -> float:
        """For benchmarks: nanoseconds of one choice of a device."""
