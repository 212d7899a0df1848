"""The samples of an op as programs."""

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor, nn

from xpurt_tools.conformance.check_module import Made
from xpurt_tools.conformance.check_op import existing
from xpurt_tools.conformance.databases import Entry
from xpurt_tools.conformance.spread import spread


class Call(nn.Module):
    """An op. Its result is what PyTorch's own tests differentiate, where parts of it are
    not determined, as the signs of eigenvectors.

    in_place: writes to the first argument.
    undetermined: the values of the result are those of uninitialized memory."""

    def __init__(
        self,
        name: str,
        op: Callable[..., Any],
        after: Callable[[Any], Any],
        in_place: Callable[..., Any] | None = None,
        undetermined: bool = False,
    ) -> None:
        super().__init__()
        self.name, self.op, self.after = name, op, after
        self.in_place, self.undetermined = in_place, undetermined

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self.after(self.op(*args, **kwargs))

    def extra_repr(self) -> str:
        return self.name

    def __deepcopy__(self, memo: Any) -> "Call":
        return self  # it has no parameters


def made_calls(
    entry: Entry,
    dtype: torch.dtype,
    most_samples: int | None,
    modes: tuple[bool, ...],
) -> Iterator[tuple[int, Made]]:
    """PyTorch's samples for this op, by position."""
    info = entry.info
    with_grad = dtype in info.supported_backward_dtypes("cpu")
    samples = existing(info.sample_inputs("cpu", dtype, requires_grad=with_grad))
    # Without a device, a factory makes a CPU tensor in every call.
    place = {"device": "cpu"} if info.is_factory_function else {}
    for index, sample in spread(samples, most_samples):
        has_place = isinstance(sample.input, Tensor) and not sample.broadcasts_input
        program = Call(
            entry.name,
            info.op,
            sample.output_process_fn_grad,
            info.inplace_variant if has_place else None,
            info.has_nondeterministic_output,
        )
        yield index, (program, (sample.input, *sample.args), place | sample.kwargs)


def call_and_in_place(made: Made) -> Iterator[tuple[str, Made]]:
    """The op, and its form in place on a copy."""
    program, args, kwargs = made
    yield "call", made
    if isinstance(program, Call) and program.in_place is not None:
        there = program.in_place

        def written(x: Tensor, *others: Any, **named: Any) -> Any:
            return there(x.clone(), *others, **named)

        form = Call(program.name, written, program.after, None, program.undetermined)
        yield "in-place", (form, args, kwargs)
