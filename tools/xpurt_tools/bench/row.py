"""The parts of a benchmark: rows of one line each, in suites with a target."""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch

from xpurt_tools.bench.other_libraries import dpnp_call

Call = Callable[[], object]
# A call by another library, and a call that waits for its end. Raises ImportError if the
# library is not installed.
Other = Callable[[], tuple[Call, Call]]
Shape = tuple[int, ...]

SEED = 7
PERIOD = 50_021  # a prime, so that no two lines of a matrix are equal
# Rows with a tensor of this many elements may not be slower than `LARGE_LIMIT`.
LARGE = 1 << 16
LARGE_LIMIT = 1.5


class Unavailable(Exception):
    """This row can't run here; the text gives what is missing."""


class BadRequest(Exception):
    """The command can't do what was requested; the text gives the reason."""


@dataclass(frozen=True, slots=True)
class Work:
    """A call to be timed, and its smallest amount of work.

    size_bytes: read and written, if every operand is touched once; 0: not meaningful.
    elements: of the largest tensor.
    """

    call: Call
    size_bytes: int = 0
    elements: int = 0


@dataclass(frozen=True, slots=True)
class Row:
    """The same work on stock CPU tensors and on xpu.

    prepare: makes the tensors for a device, and the call. Its Work is complete for the
        device "cpu"; for others only the call is set. Raises Unavailable.
    beside: makes the work on xpu that takes the place of that on CPU tensors.
    others: the same work by other libraries, by their names.
    at_most: the largest allowed ratio; None: the suite's. others_at_most: of the ratios
        to other libraries, by their names.
    long: takes seconds; a quick run leaves it out.
    compiled: the call runs compiled code, whose flops can't be counted.
    in_bytes: the call returns the bytes of memory that it took. They are compared, and
        not its time.
    """

    name: str
    prepare: Callable[[torch.device], Work]
    beside: Callable[[torch.device], Work] | None = None
    others: Mapping[str, Other] = field(default_factory=dict)
    at_most: float | None = None
    others_at_most: Mapping[str, float] = field(default_factory=dict)
    long: bool = False
    compiled: bool = False
    in_bytes: bool = False


@dataclass(frozen=True, slots=True)
class Reach:
    """Rows whose names contain `rows` have to reach this share of a limit."""

    limit: str  # a field of `Limits`
    share: float
    rows: str = ""


@dataclass(frozen=True, slots=True)
class Mean:
    """A limit for the geometric mean of the rows whose names match a pattern."""

    rows: str
    at_most: float


@dataclass(frozen=True, slots=True)
class Suite:
    """Rows, and limits for their ratios xpu/CPU.

    target: of the geometric mean, as in a user's program. neutral_target: of the same
        without page faults.
    row_limit: for each row by itself, if it is stricter than that of large rows.
    processor: the limits are for processor time of one thread, not for the time that
        passes.
    policy: the kernel policy of all rows; "": the user's.
    beside: what xpu is compared with.
    only_by_name: it runs only if it is requested by its name.
    """

    name: str
    about: str
    target: float
    rows: tuple[Row, ...]
    neutral_target: float | None = None
    row_limit: float | None = None
    reach: Reach | None = None
    means: tuple[Mean, ...] = ()
    processor: bool = False
    policy: str = ""
    beside: str = "CPU"
    only_by_name: bool = False

    def row(self, name: str) -> Row | None:
        return next((row for row in self.rows if row.name == name), None)

    def limit_of(self, name: str, elements: int) -> float | None:
        """The largest allowed ratio of the row of this name, with so many elements."""
        row = self.row(name)
        if row is not None and row.at_most is not None:
            return row.at_most
        if self.row_limit is not None:
            return self.row_limit
        return LARGE_LIMIT if elements >= LARGE else None


def tensors_in(result: object) -> Iterator[torch.Tensor]:
    """Every tensor in a result of lists, tuples and tensors."""
    if isinstance(result, torch.Tensor):
        yield result
    elif isinstance(result, list | tuple):
        for each in result:
            yield from tensors_in(each)


def counted_flops(call: Call) -> int:
    """Additions and multiplications of the products, convolutions and attentions in a
    call on CPU tensors, the backward's too. Causal attention counts in full."""
    from torch.utils import flop_counter  # takes long to import

    def forward(*shapes: Any, **options: Any) -> int:
        count: Any = flop_counter.sdpa_flop_count
        return int(count(*shapes[:3]))

    def backward(*shapes: Any, **options: Any) -> int:
        count: Any = flop_counter.sdpa_backward_flop_count
        return int(count(*shapes[:4]))

    aten = torch.ops.aten
    on_the_cpu = {
        aten._scaled_dot_product_flash_attention_for_cpu: forward,
        aten._scaled_dot_product_flash_attention_for_cpu_backward: backward,
    }
    counter = flop_counter.FlopCounterMode(display=False, custom_mapping=on_the_cpu)
    with counter:
        call()
    return int(counter.get_total_flops())


def drawn(shapes: tuple[Shape, ...], dtype: torch.dtype) -> list[torch.Tensor]:
    """CPU tensors, the same every time. Their values are between 0.5 and 1.5, so that
    logarithms and quotients are ordinary numbers. Large tensors repeat values, since
    drawing takes longer than most ops."""
    generator = torch.Generator().manual_seed(SEED)
    made = []
    for shape in shapes:
        count = math.prod(shape)
        few = torch.rand(min(count, PERIOD), generator=generator).add_(0.5).to(dtype)
        many = few.repeat(-(-count // PERIOD)) if count > PERIOD else few
        made.append(many[:count].view(shape))
    return made


def on(
    name: str,
    op: Callable[..., Any],
    *shapes: Shape,
    dtype: torch.dtype = torch.float32,
    grad: bool = False,
    backward: bool = False,
    dpnp: Callable[..., object] | None = None,
    long: bool = False,
) -> Row:
    """A row that calls `op` with a tensor of each of the shapes.

    grad: the tensors require a gradient.
    backward: times only the gradients of all tensors; `op` is called once, before.
    dpnp: the same by dpnp; takes the module, and arrays with the same numbers.
    """

    def prepare(device: torch.device) -> Work:
        tensors = [
            # A copy on the CPU, too: views are drawn, and an op on a view costs less.
            each.to(device, copy=True).requires_grad_(grad or backward)
            for each in drawn(shapes, dtype)
        ]
        call: Call = lambda: op(*tensors)  # noqa: E731
        if backward:
            call = _backward(call, tensors)
        if device.type != "cpu":
            return Work(call)
        results = list(tensors_in(call()))
        touched = [*tensors, *results]
        return Work(
            call,
            size_bytes=sum(each.numel() * each.element_size() for each in touched),
            elements=max((each.numel() for each in touched), default=0),
        )

    others: dict[str, Other] = {}
    if dpnp is not None:
        function = dpnp
        others["dpnp"] = lambda: dpnp_call(function, drawn(shapes, dtype))
    return Row(name, prepare, others=others, long=long)


def _backward(forward: Call, tensors: list[torch.Tensor]) -> Call:
    result = forward()
    assert isinstance(result, torch.Tensor)
    gradient = torch.ones_like(result)
    return lambda: torch.autograd.grad(result, tensors, gradient, retain_graph=True)
