"""What the sweeps of PyTorch's database of ops have in common."""

from abc import abstractmethod
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.utils._pytree import tree_flatten, tree_unflatten

from xpurt.testing import outcome
from xpurt_tools.conformance.check_op import OpCheck, existing
from xpurt_tools.conformance.databases import Entry, load
from xpurt_tools.conformance.gpu_types import Oracle
from xpurt_tools.conformance.pairs import Pair, pairs
from xpurt_tools.conformance.record import ON_THE_CPU, Record
from xpurt_tools.conformance.settings import Settings
from xpurt_tools.conformance.spread import spread
from xpurt_tools.conformance.tolerance import tolerance

# With other arguments than PyTorch's samples these return memory that nothing has written.
GROW = ("resize_", "resize_as_")


class OfOps:
    """A sweep of calls that differ from PyTorch's samples of an op.

    dtypes: those that are run by default: of each op the first ones that it has.
    per_op: how many of them.
    also: those that are run besides if the op has them.
    """

    dtypes: tuple[str, ...] = ("float32", "int64", "bool", "complex64")
    per_op = 1
    also: tuple[str, ...] = ()

    def pairs(self, settings: Settings) -> list[Pair]:
        """One in `settings.sample` ops. With `settings.dtypes`, each of these."""
        ops = [
            entry for entry in load(settings.database).values() if entry.kind == "op"
        ]
        found: list[Pair] = []
        for entry in ops:
            if settings.dtypes:
                found += pairs([entry], settings.dtypes, settings.ops)
            else:
                found += pairs([entry], self.dtypes, settings.ops)[: self.per_op]
                found += pairs([entry], self.also, settings.ops)
        names = list(dict.fromkeys(pair.name for pair in found))
        chosen = set(names[:: settings.sample])
        return [pair for pair in found if pair.name in chosen]

    def check(self, pair: Pair, record: Record, settings: Settings) -> None:
        entry = load(settings.database)[pair.name]
        dtype = getattr(torch, pair.dtype)
        bounds = tolerance(entry.info, dtype)
        check = OpCheck(entry.info, record, bounds, exactly=True)
        check.oracle = told_apart(record)
        check.uninitialized |= entry.name in GROW
        samples = spread(self.samples(entry, dtype), settings.samples_per_pair)
        for index, sample in samples:
            self.check_sample(check, index, sample)

    def samples(self, entry: Entry, dtype: torch.dtype) -> Iterator[Any]:
        """PyTorch's samples, one of each form."""
        op = entry.info
        with_grad = dtype in op.supported_backward_dtypes("cpu")
        seen = set()
        for sample in existing(op.sample_inputs("cpu", dtype, requires_grad=with_grad)):
            form = form_of((sample.input, sample.args, sample.kwargs))
            if form not in seen:
                seen.add(form)
                yield sample

    @abstractmethod
    def check_sample(self, check: OpCheck, index: int, sample: Any) -> None:
        """Runs the calls that are derived from one sample."""


def told_apart(record: Record) -> Oracle[Any]:
    """An oracle that tells when it runs, so that a crash of the CPU's own kernel is not
    taken for one of xpu."""

    def oracle(body: Callable[[Any], Any], inputs: Any) -> tuple[Any, Exception | None]:
        record.tell_side(ON_THE_CPU)
        try:
            return outcome(body, inputs)
        finally:
            record.tell_side("")

    return oracle


def form_of(tree: Any) -> Any:
    """What two samples that lead to the same calls have in common: the structure, the
    ranks and dtypes of tensors, and which numbers are whole, negative or zero."""
    leaves, structure = tree_flatten(tree)

    def form(leaf: Any) -> Any:
        if isinstance(leaf, torch.Tensor):
            return leaf.dim(), leaf.dtype, leaf.layout
        if isinstance(leaf, bool | str | torch.dtype) or leaf is None:
            return leaf
        if isinstance(leaf, int | float):
            return type(leaf), leaf > 0, leaf < 0
        return type(leaf)

    return str(structure), tuple(map(form, leaves))


def with_leaves(tree: Any, changes: dict[int, Any]) -> Any:
    """`tree` with other leaves, by their positions. A tensor that occurs twice is
    replaced once."""
    leaves, structure = tree_flatten(tree)
    return tree_unflatten(
        [changes.get(position, leaf) for position, leaf in enumerate(leaves)], structure
    )


def operands(tree: Any) -> dict[int, torch.Tensor]:
    """The strided tensors of `tree` by the positions of their leaves."""
    return {
        position: leaf
        for position, leaf in enumerate(tree_flatten(tree)[0])
        if isinstance(leaf, torch.Tensor)
        and leaf.layout is torch.strided
        and not leaf.is_nested
        and not leaf.is_quantized
        and not leaf.is_meta
    }
