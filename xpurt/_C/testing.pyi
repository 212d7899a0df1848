"""Types of `xpurt._C.testing`: for tests, and for benchmarks of the choice."""

from collections.abc import Sequence

from torch import Tensor

def preferences_held() -> int:
    """The number of preferences in force, in all threads."""

def set_split_proportions(
    proportions: Sequence[float], least_bytes: float = 0, unit: int = 0
) -> None:
    """Splits all work of this many bytes, by position, into shards of
    multiples of `unit` rows; no proportions end it."""

def shards_run(index: int) -> list[int]: ...
def transfers_to(index: int) -> list[tuple[int, int]]:
    """The copies of storages to each device so far: their number, and bytes."""

def replica_bytes(index: int, position: int) -> int: ...
def empty_pool(pool: tuple[int, int]) -> None: ...
def releasing_bytes(device: int) -> int:
    """The bytes of segments that are being returned to the driver."""

def device_of_pointer(address: int) -> int:
    """The ordinal whose memory contains the address, or -1."""

def block_of_pointer(address: int) -> tuple[int, int]:
    """Address and bytes of the block in use around the address, or (0, 0)."""

def is_pinned_pointer(address: int) -> bool: ...
def raw_allocate(size_bytes: int) -> int:
    """The address of memory of the current device and stream, without a tensor."""

def raw_free(address: int) -> None: ...
def raw_record_stream(address: int, stream_id: int, device: int) -> None: ...
def count_frees() -> int:
    """The number of blocks freed since the first call."""

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

def take_locks(ranks: list[str], without_gil: bool = False) -> None:
    """Takes locks of these ranks, each under those before it, and gives them up."""

def build_kernel(index: int, entry: str, source: str) -> None:
    """Builds OpenCL C for the home device of xpu:index, and drops it."""

def force_vector_width(width: int) -> None:
    """Replaces the native vector width of floats that devices report. It
    selects the kernel of matrix products; 0 restores the reported one."""

def built_kernels() -> int:
    """The number of kernels that this process has made."""

def loaded_kernels() -> int:
    """The number of these that came from a binary of an earlier process."""

def onednn_plans(index: int) -> tuple[int, int]:
    """The number of oneDNN's primitives, with reorders around them, that are kept
    for the home device of xpu:index, and the largest number."""

def ops_with_cpu_kernels() -> list[str]:
    """The ops whose CPU tensors rows may compute now: "aten::add.Tensor"."""

class PairedChoice:
    """See Note [Paired calls]."""

    def next(self, key: int, build_us: float) -> tuple[bool, bool]:
        """Whether the row runs the call, and whether the call is timed."""
    def record(self, key: int, by_row: bool, us: float) -> None: ...
    def refuse(self, key: int) -> None: ...

def activation_names() -> list[str]: ...
def unboxed_ops() -> list[str]:
    """Ops registered with their own signature: "aten::add.Tensor"."""

def direct_ops() -> list[str]:
    """Those of them that have a direct form."""

def set_direct_forms(on: bool) -> None:
    """If off, these ops run as those without one."""

def fallback_mode() -> str: ...
def copy_verdict(name: str, overload: str) -> tuple[str, str]:
    """Whether an op may run on copies: "trusted", "checked", "refused" or "never";
    and the reason why it may not. See csrc/native/unsafe_copies.h. Raises
    RuntimeError for an unknown op."""

def check_trusted_copies(value: bool) -> None: ...
def set_host_accessible(index: int, value: bool) -> None: ...
def expected_costs(
    index: int, cost_class: str, letter: str, layout: str, elements: float
) -> tuple[float, float] | None:
    """Microseconds (native, by a kernel) on the home device; None: not measured."""

def learned_calls() -> list[
    tuple[str, int, str, str, int, int, int, list[int], list[float]]
]:
    """Op, ordinal, letter, layout, log2 of the elements, calls to the next timed
    sample, the candidate in use at home, timed samples by candidate, measured over
    expected time by candidate. Candidates are kernels by position, then the native
    kernel."""

def forget_statistics() -> None: ...
def set_learning_bias(native_us: float, kernel_us: float) -> None:
    """A time added to every time that is learned from."""

def choice_ns(
    name: str, overload: str, operands: Sequence[Tensor], calls: int
) -> float:
    """For benchmarks: nanoseconds of one choice of a tier."""

class Learner:
    """Chooses and learns in one bucket of calls, by the times that it
    gets."""

    def __init__(
        self, native_us: float, kernel_us: float, is_built: bool = False
    ) -> None: ...
    def next(self, build_us: float) -> tuple[bool, bool, int]:
        """Runs the kernel, is timed, calls that follow in the same way."""

    def record(self, kernel: bool, us: float, stall_us: float) -> None: ...
    @property
    def kernel(self) -> bool: ...

def spent_before_trial(
    cost_us: float, now_us: float, build_us: float, is_new: bool, may_divide: bool
) -> float: ...

class DevicePrior:
    """See Note [Device prior]."""

    def __init__(self) -> None: ...
    def record(self, op: int, measured_us: float, expected_us: float) -> None: ...
    def corrected_us(self, expected_us: float) -> float: ...

class Slowdown:
    """See Note [Slowdown]."""

    def __init__(self) -> None: ...
    def record(self, ratio: float, measured_us: float, is_known: bool = True) -> bool:
        """Returns whether choices may have changed."""

    def suspect(self) -> bool:
        """Returns whether the sign counts."""

    @property
    def factor(self) -> float: ...
    @property
    def wants_samples(self) -> bool: ...

class LearnedCost:
    """See Note [Learned costs]."""

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
    """See Note [Predicted clocks]. Storages are small numbers."""

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

def builds_pending() -> int:
    """The number of kernels that are being built, or queued, in the background."""

def hold_alone(position: int | None) -> None:
    """Holds all work of the current ordinal to one position, as if the program was
    measured to be faster there; None ends it."""

def pretend_times(us: Sequence[float]) -> None:
    """The scheduler's clock stands, and goes on by so many microseconds with each timed
    call that is not divided, by position, behind them PyTorch's kernel. Empty: it
    runs."""

def left_out_us() -> float:
    """Microseconds in which the program had waited and gave no work to the devices
    of the current ordinal."""

def decision_ns(
    name: str, overload: str, operands: Sequence[Tensor], calls: int
) -> float:
    """For benchmarks: nanoseconds of one choice of a device."""
