"""Which ops write to arguments that their schemas call inputs.

Runs PyTorch's own databases of ops and modules on the CPU, forward and backward, and
compares the bytes of each input before and after every aten call. What
it finds belongs into kSilentlyWritten (xpurt/csrc/op/op_record.cpp). Takes minutes:

    python tests/lazy_copies/audit_silent_writes.py [names of ops...]
"""

import sys
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.testing._internal.common_methods_invocations import op_db
from torch.testing._internal.common_modules import module_db
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_iter, tree_leaves

SAMPLES = 8


def bytes_of(tensor: torch.Tensor) -> torch.Tensor | None:
    """A copy of what the whole storage holds; a tensor may reach parts of it only."""
    if tensor.device.type != "cpu" or tensor.layout != torch.strided:
        return None
    if type(tensor) not in (torch.Tensor, torch.nn.Parameter) or tensor.is_quantized:
        return None
    if tensor._is_zerotensor() or tensor.untyped_storage().nbytes() == 0:
        return None
    whole = torch.empty(0, dtype=torch.uint8).set_(tensor.untyped_storage())
    return whole.clone()


class SilentWrites(TorchDispatchMode):
    """Collects the inputs that calls have written to, as (op, argument)."""

    def __init__(self) -> None:
        super().__init__()
        self.found: set[tuple[str, str]] = set()
        self.seen: set[str] = set()

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        schema = func._schema
        given = dict(zip((a.name for a in schema.arguments), args, strict=False))
        given.update(kwargs)
        declared = {
            tensor.untyped_storage()._cdata
            for argument in schema.arguments
            if argument.alias_info is not None and argument.alias_info.is_write
            for tensor in tree_iter(given.get(argument.name))
            if isinstance(tensor, torch.Tensor) and tensor.layout == torch.strided
        }
        before = [
            (argument.name, tensor, copy)
            for argument in schema.arguments
            for tensor in tree_iter(given.get(argument.name))
            if isinstance(tensor, torch.Tensor)
            and (copy := bytes_of(tensor)) is not None
            and tensor.untyped_storage()._cdata not in declared
        ]
        result = func(*args, **kwargs)
        name = schema.name + (
            "." + schema.overload_name if schema.overload_name else ""
        )
        self.seen.add(name)
        for argument, tensor, copy in before:
            after = bytes_of(tensor)
            if after is None or not torch.equal(after, copy):
                self.found.add((name, argument))
        return result


def runs(names: list[str]) -> Iterator[Callable[[], object]]:
    for op in op_db:
        if names and op.name not in names:
            continue
        dtype = next((d for d in (torch.float32, torch.int64, torch.cfloat)
                      if d in op.supported_dtypes("cpu")), None)  # fmt: skip
        if dtype is None:
            continue
        differentiates = dtype in op.supported_backward_dtypes("cpu")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                samples = list(
                    op.sample_inputs("cpu", dtype, requires_grad=differentiates)
                )
            except Exception:
                continue
        for sample in samples[:SAMPLES]:
            yield lambda op=op, s=sample: op(s.input, *s.args, **s.kwargs)
    for entry in module_db:
        if names and entry.name not in names:
            continue
        inputs = entry.module_inputs_func(
            entry, device="cpu", dtype=torch.float32, requires_grad=True, training=True
        )
        for each in inputs[:SAMPLES]:
            made = each.constructor_input
            module = entry.module_cls(*made.args, **made.kwargs)
            called = each.forward_input
            if called is not None:
                yield lambda m=module, c=called: m(*c.args, **c.kwargs)


def audit(names: list[str]) -> SilentWrites:
    mode = SilentWrites()
    for run in runs(names):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                with mode:
                    result = run()
                    total = [
                        leaf.sum()
                        for leaf in tree_leaves(result)
                        if isinstance(leaf, torch.Tensor) and leaf.requires_grad
                    ]
                    if total:
                        sum(t.real if t.is_complex() else t for t in total).backward()
            except Exception:  # samples that are errors, or no gradient
                continue
    return mode


if __name__ == "__main__":
    done = audit(sys.argv[1:])
    print(f"{len(done.seen)} ops seen; written without a word:")
    for op, argument in sorted(done.found):
        print(f'    {{"{op}", "{argument}"}},')
