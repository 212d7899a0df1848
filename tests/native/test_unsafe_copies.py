"""Ops that no copy can serve: see Note [Ops on copies] in csrc/native/unsafe_copies.h."""

import json
import re
import threading
from collections.abc import Callable, Iterator

import pytest
import torch
from own_process import output, run

from xpurt import _C
from xpurt.errors import FallbackError
from xpurt.mapping import current_placement

KEPT: list[object] = []
GO = threading.Event()


def writes(x: torch.Tensor) -> None:
    x.add_(1)


def keeps(x: torch.Tensor) -> None:
    KEPT.append(x)


def writes_later(x: torch.Tensor) -> None:
    def later() -> None:
        GO.wait(60)
        x.add_(1)

    thread = threading.Thread(target=later)
    thread.start()
    KEPT.append(thread)


def keeps_its_result(x: torch.Tensor) -> torch.Tensor:
    made = x + 1
    KEPT.append(made)
    return made


def loops(x: torch.Tensor) -> torch.Tensor:
    """A function that knows itself: garbage that only a collection finds."""

    def down(n: int) -> torch.Tensor:
        return x * 2 if n == 0 else down(n - 1)

    return down(3)


HONEST: dict[str, tuple[str, Callable[..., object], list[float]]] = {
    "fresh": ("(Tensor x) -> Tensor", lambda x: x * 2, [2, 2, 2, 2]),
    "nothing": ("(Tensor x) -> Tensor", lambda x: x.new_empty(0), []),
    "slice": ("(Tensor x) -> Tensor", lambda x: (x * 2)[1:], [2, 2, 2]),
    "halves": (
        "(Tensor x) -> (Tensor, Tensor)",
        lambda x: tuple((x * 2).split(2)),
        [2, 2],
    ),
    "view": ("(Tensor(a) x) -> Tensor(a)", lambda x: x[2:], [1, 1]),
    "unsaid_view": ("(Tensor x) -> Tensor", lambda x: x.view(2, 2)[0], [1, 1]),
    "itself": ("(Tensor(a) x) -> Tensor(a)", lambda x: x, [1, 1, 1, 1]),
    "declared": (
        "(Tensor(a!) x) -> Tensor(a!)",
        lambda x: x.add_(1),
        [2, 2, 2, 2],
    ),
    "lists": ("(Tensor[] x) -> Tensor", lambda x: x[0] + x[0], [2, 2, 2, 2]),
    "storage_looked_at": (
        "(Tensor x) -> Tensor",
        lambda x: x * (x.untyped_storage().nbytes() / 16),
        [1, 1, 1, 1],
    ),
}

DISHONEST: dict[str, tuple[str, Callable[..., object], str]] = {
    "writes": ("(Tensor x) -> ()", writes, "wrote to argument x"),
    "keeps": ("(Tensor x) -> ()", keeps, "kept argument x"),
    "writes_later": ("(Tensor x) -> ()", writes_later, "kept argument x"),
    "keeps_its_result": ("(Tensor x) -> Tensor", keeps_its_result, "kept a result"),
}


def host_reads() -> bool:
    return any(device.host_accessible for device in current_placement().ordinals[0])


@pytest.fixture(scope="module")
def ops() -> Iterator[object]:
    library = torch.library.Library("xpurt_test_copies", "DEF")
    for name, (schema, function, _) in (HONEST | DISHONEST).items():
        library.define(name + schema)
        library.impl(name, function, "CPU")
    library.define("loops(Tensor x) -> Tensor")
    library.impl("loops", loops, "CPU")
    yield torch.ops.xpurt_test_copies
    library._destroy()


@pytest.mark.parametrize("name", HONEST)
def test_ops_that_do_what_they_say(name: str, ops, xpu: torch.device) -> None:
    x = torch.ones(4, device=xpu)
    found = getattr(ops, name)([x] if name == "lists" else x)
    found = found[0] if isinstance(found, tuple) else found
    assert found.device == xpu
    assert found._base is None or found._base.device == xpu
    assert found.tolist() == HONEST[name][2]
    assert x.tolist() == ([2] * 4 if name == "declared" else [1] * 4)
    if name in ("view", "unsaid_view", "itself"):
        assert found.untyped_storage()._cdata == x.untyped_storage()._cdata


@pytest.mark.parametrize("name", DISHONEST)
def test_ops_that_do_more(name: str, ops, xpu: torch.device) -> None:
    """Either all see what was written, or it is refused: never neither."""
    x = torch.ones(4, device=xpu)
    readable = host_reads()
    GO.clear()
    if readable:
        getattr(ops, name)(x)
    else:
        with pytest.raises(FallbackError, match=DISHONEST[name][2]) as caught:
            getattr(ops, name)(x)
        assert "register a kernel" in str(caught.value)
        del caught
    GO.set()
    for thread in KEPT:
        if isinstance(thread, threading.Thread):
            thread.join()
    KEPT.clear()
    written = readable and name in ("writes", "writes_later")
    assert x.tolist() == ([2] * 4 if written else [1] * 4)
    assert (x + 0).tolist() == x.tolist()


def test_cycles_of_garbage_hold_nothing(ops, xpu: torch.device) -> None:
    assert ops.loops(torch.ones(4, device=xpu)).tolist() == [2] * 4


PACKING = """
    import gc, torch, xpurt
    torch.backends.quantized.engine = "onednn"
    weight = torch.quantize_per_tensor(torch.ones(2, 2, 3, 3), 0.1, 0, torch.qint8)
    x = torch.quantize_per_tensor(torch.ones(1, 2, 6, 6), 0.1, 0, torch.quint8)
    for device in ("cpu", "xpu"):
        options = [1, 1], [0, 0], [1, 1], 1
        packed = torch.ops.quantized.conv2d_prepack(weight.to(device), None, *options)
        made = torch.ops.quantized.conv2d(x.to(device), packed, 1.0, 0)
        print(made.device.type, made.int_repr().unique().tolist())
        packed = torch.ops.mkldnn_prepacked.conv2d_prepack(
            torch.ones(2, 2, 3, 3, device=device), None, *options, [1, 2, 6, 6], "none")
        x_dense = torch.ones(1, 2, 6, 6, device=device)
        made = torch.ops.mkldnn_prepacked.conv2d_run(x_dense, packed)
        print(made.device.type, made.unique().tolist())
    del packed, made
    gc.collect()
"""


def test_packed_weights_outlive_their_op() -> None:
    """They are memory that the op requested as a bare pointer."""
    ended = run(PACKING)
    assert ended.returncode == 0, ended.stderr
    lines = ended.stdout.split("\n")
    assert lines[:4] == ["cpu [18]", "cpu [18.0]", "xpu [18]", "xpu [18.0]"]


def test_pointers_in_tensors_are_refused_everywhere(xpu: torch.device) -> None:
    weight = torch.ones(4, 4, device=xpu)
    with pytest.raises(FallbackError, match=r"holds a pointer.*Give it CPU tensors"):
        torch.ops._quantized.wrapped_fbgemm_pack_gemm_matrix_fp16(weight)


COLLECTIVES = (
    "c10d",
    "symm_mem",
    "_dtensor",
    "c10d_functional",
    "_c10d_functional",
    "_c10d_functional_autograd",
)
PACKED = re.compile(r"__torch__\.torch\.classes\.(quantized|rnn|sparse|mkldnn)\.")
# What a value may be that holds no tensor which the fallback does not see.
PLAIN = re.compile(
    r"(Tensor|Storage|number|Scalar|int|SymInt|float|SymFloat|complex|bool|SymBool|str"
    r"|Device|Generator|ScalarType|Layout|MemoryFormat|QScheme|NoneType)"
)

# Libraries of PyTorch's that have ops with a CPU kernel and no other: those that the
# fallback runs.
LIBRARIES = """
    import json, torch, torch.distributed, xpurt
    has = torch._C._dispatch_has_kernel_for_dispatch_key
    run = [
        name for name in torch._C._dispatch_get_all_op_names()
        if not name.startswith("xpurt::")
        and any(has(name, key + "CPU") for key in ("", "Quantized", "Sparse", "SparseCsr",
                                                   "NestedTensor", "Mkldnn"))
        and not any(has(name, "Composite" + key + "Autograd")
                    for key in ("Implicit", "Explicit"))
    ]
    print(json.dumps(sorted({name.split("::")[0] for name in run})))
"""


def test_each_library_of_ops_is_known() -> None:
    known = "_quantized aten c10d mkl mkldnn mkldnn_prepacked onednn quantization "
    known += "quantized sparse"
    assert json.loads(output(LIBRARIES)) == known.split()


def types_of(schema: torch._C.FunctionSchema) -> list[str]:
    made = []
    for each in (*schema.arguments, *schema.returns):
        text = str(each.type)
        while inner := re.fullmatch(r"(?:List|Optional)\[(.*)\]", text):
            text = inner[1]
        made.append(text)
    return made


def test_each_op_is_trusted_checked_or_refused() -> None:
    rules: dict[str, int] = {}
    present = set(torch._C._dispatch_get_all_op_names())
    for schema in torch._C._jit_get_all_schemas():
        name = schema.name + (schema.overload_name and f".{schema.overload_name}")
        if name not in present:
            continue  # of TorchScript alone
        rule, reason = _C.testing.copy_verdict(schema.name, schema.overload_name)
        rules[rule] = rules.get(rule, 0) + 1
        library = schema.name.split("::")[0]
        types = types_of(schema)
        opaque = [t for t in types if not PLAIN.fullmatch(t) and not PACKED.match(t)]
        if library in COLLECTIVES or "Work" in " ".join(types):
            assert rule == "refused", name
        elif library == "aten":
            assert rule == "trusted", name
        elif "..." in str(schema):
            assert rule == "refused", name
        elif rule != "never":
            assert rule == ("refused" if opaque else "checked"), (name, opaque, reason)
        assert bool(reason) == (rule in ("refused", "never")), name
        if any(argument.name == "async_op" for argument in schema.arguments):
            assert rule == "refused", name
    assert rules.keys() == {"trusted", "checked", "refused", "never"}, rules


@pytest.mark.parametrize("given", ["Any", "Stream", "Dict(str, Tensor)", "(Tensor, int)",
                                   "Future(Tensor)"])  # fmt: skip
@pytest.mark.parametrize("returned", [False, True])
def test_types_that_may_hide_tensors(given: str, returned: bool) -> None:
    library = torch.library.Library("xpurt_test_types", "DEF")
    if returned:
        library.define(f"op(Tensor x) -> (Tensor, {given})")
    else:
        library.define(f"op(Tensor x, {given} y) -> Tensor")
    try:
        rule, reason = _C.testing.copy_verdict("xpurt_test_types::op", "")
        assert rule == "refused"
        assert "may keep tensors" in reason
    finally:
        library._destroy()


@pytest.mark.mappings("GPU")
def test_no_op_of_aten_s_writes_what_it_does_not_say(xpu: torch.device) -> None:
    """The checks that others get, for a few of those that are trusted."""
    if host_reads():
        pytest.skip("nothing is copied here")
    x = torch.rand(2, 4, 6, 6, device=xpu)
    mean, var = torch.zeros(4, device=xpu), torch.ones(4, device=xpu)
    functional = torch.nn.functional
    _C.testing.check_trusted_copies(True)
    try:
        functional.batch_norm(x, mean, var, training=True)
        functional.max_pool2d(x, 2)
        functional.conv2d(x, torch.rand(3, 4, 3, 3, device=xpu))
        functional.rrelu(x, training=True)
        torch.linalg.svd(x)
        x.sort()
        x.unique()
        x.cumsum(0)
        torch.quantile(x, 0.5)
        x.to_sparse().coalesce().to_dense()
        x[0, 0].to_sparse_csr() @ x[0, 1]
        x.index_put_((torch.tensor([0], device=xpu),), x[1:] * 2)
        torch.nn.LSTM(6, 5).to(xpu)(x[0])
    finally:
        _C.testing.check_trusted_copies(False)
