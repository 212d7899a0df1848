"""All calls of the sweep: those along lines, and those of elements, matrices, images and
tables."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from xpurt_tools.conformance.sweeps.shapes_cases import (
    COMPANIONS,
    Call,
    Case,
    Make,
    with_gradients,
)
from xpurt_tools.conformance.sweeps.shapes_images import IMAGES
from xpurt_tools.conformance.sweeps.shapes_lines import LINES
from xpurt_tools.conformance.sweeps.shapes_matrices import MATRICES, TRANSFORMS
from xpurt_tools.conformance.sweeps.shapes_networks import NETWORKS
from xpurt_tools.conformance.sweeps.shapes_operands import Operands
from xpurt_tools.conformance.sweeps.shapes_programs import PROGRAMS
from xpurt_tools.conformance.sweeps.shapes_rows import OF_ROWS
from xpurt_tools.conformance.sweeps.shapes_training import TRAINING

ELEMENTS = {"inner": (3, 17, 100, 257), "middle": COMPANIONS, "outer": COMPANIONS}


def of_elements(operands: int, broadcast: int = -1, values: str = "normal") -> Make:
    """Operands of three axes; operand number `broadcast` lacks the middle one."""

    def make(new: Operands, case: Case) -> tuple[Any, ...]:
        outer, middle = case.dims("outer"), case.dims("middle")
        found = []
        for number in range(operands):
            between = (1,) * len(middle) if number == broadcast else middle
            found.append(new(*outer, *between, case["inner"], values=values))
        return tuple(found)

    return make


def elements(
    name: str, run: Callable[..., Any], *rows: str, make: Make, **more: Any
) -> Call:
    return Call(name, "pointwise", make, run, ELEMENTS, rows or (name,), **more)


POINTWISE = (
    elements("add", lambda x, y, **k: torch.add(x, y, **k), make=of_elements(2), takes_out=True,
             dtypes=("float32", "bfloat16", "int64")),
    elements("mul, broadcast", lambda x, y: x * y, "mul", make=of_elements(2, 1)),
    elements("sub, broadcast first", lambda x, y: y - x, "sub", make=of_elements(2, 0)),
    elements("where", lambda x, y, z: torch.where(x > 0, y, z), make=of_elements(3)),
    elements("addcmul", lambda x, y, z, **k: torch.addcmul(x, y, z, **k), make=of_elements(3),
             takes_out=True),
    elements("neg", lambda x, **k: torch.neg(x, **k), make=of_elements(1), takes_out=True),
    elements("clamp", lambda x: x.clamp(-0.5, 0.5), make=of_elements(1)),
    elements("copy_", lambda x: x.contiguous() if not x.is_contiguous() else x.clone(),
             make=of_elements(1), dtypes=("float32", "uint8"),
             layouts=("turned", "stepped", "rolled", "expanded")),
    elements("to", lambda x: x.to(torch.float64), "copy_", make=of_elements(1)),
    elements("fill_", lambda x: x.new_empty(x.shape).fill_(3), make=of_elements(1)),
    elements("in place", lambda x, y: x.clone().mul_(y).add_(1.5), "mul", make=of_elements(2)),
    elements("into every other", lambda x, y: torch.zeros_like(x)[..., ::2].add_(y[..., ::2]),
             "add", make=of_elements(2)),
    elements("dropout backward", lambda x, y: torch.ops.aten.native_dropout_backward(
             x, y > 0, 2.0), "native_dropout_backward", make=of_elements(2)),
    elements("frexp", lambda x: tuple(torch.frexp(x)), make=of_elements(1)),
    elements("logsigmoid", F.logsigmoid, "log_sigmoid_forward", make=of_elements(1)),
    elements("tril", lambda x: x.tril(1) if x.dim() > 1 else x[None].tril(), make=of_elements(1),
             rtol=0.0),
    elements("triu", lambda x: x.triu(-1) if x.dim() > 1 else x[None].triu(),
             make=of_elements(1), rtol=0.0),
    elements("masked_fill", lambda x, y: x.masked_fill(y > 0, 2.0), make=of_elements(2)),
    elements("polygamma", lambda x: torch.polygamma(1, x.abs() + 1), "polygamma",
             "xpurt::trigamma", make=of_elements(1),
             rtol=1e-4),
    elements("trace", lambda x: x.flatten(0, -2).trace() if x.dim() > 1 else x[None].trace(),
             make=of_elements(1)),
    elements("prelu backward", with_gradients(lambda x: F.prelu(x, torch.full((1,), 0.3,
             dtype=x.dtype, device=x.device))), "_prelu_kernel_backward", make=of_elements(1)),
    elements("logsigmoid backward", with_gradients(F.logsigmoid), "log_sigmoid_backward",
             make=of_elements(1)),
    elements("nonzero_static", lambda x: torch.nonzero_static(x > 0, size=7), make=of_elements(1),
             rtol=0.0),
    elements("nonzero", lambda x: (x > 0).nonzero(), make=of_elements(1), rtol=0.0),
    elements("masked_select", lambda x, y: x.masked_select(y > 0), make=of_elements(2)),
    elements("masked_scatter", lambda x, y: x.masked_scatter(y > 0, y.contiguous()),
             make=of_elements(2)),
)  # fmt: skip

# Products.

PRODUCT = {"m": (1, 3, 17, 70), "n": (1, 3, 17, 70), "k": (1, 5, 33, 70)}
BATCHED = {**PRODUCT, "batch": (1, 2, 5)}
FLOPS = 1 << 22


def matrices(*shapes: str, values: str = "small") -> Make:
    """Operands whose dimensions are these axes: "mk" "kn"; "b" is the batch."""

    def make(new: Operands, case: Case) -> tuple[Any, ...]:
        sizes = {**case.sizes, "b": case.sizes.get("batch", 1)}
        return tuple(
            new(*(sizes[axis] for axis in shape), values=values) for shape in shapes
        )

    return make


def _int_product(a: Tensor, b: Tensor) -> Tensor:
    """On the CPU by another op: with VNNI, PyTorch's reads expanded rows wrongly."""
    return a.int() @ b.int() if a.is_cpu else torch._int_mm(a, b)


def product(
    name: str,
    run: Callable[..., Any],
    *shapes: str,
    rows: tuple[str, ...] = (),
    **more: Any,
) -> Call:
    axes = BATCHED if any("b" in shape for shape in shapes) else PRODUCT
    make = matrices(*shapes, values=more.pop("values", "small"))
    more = {"rtol": 0.0, **more}
    return Call(name, "products", make, run, axes, rows or (name,), most=FLOPS, **more)


PRODUCTS = (
    product("mm", lambda a, b, **k: torch.mm(a, b, **k), "mk", "kn", takes_out=True,
            dtypes=("float32", "float64", "bfloat16")),
    product("bmm", lambda a, b, **k: torch.bmm(a, b, **k), "bmk", "bkn", takes_out=True),
    product("addmm", lambda c, a, b: torch.addmm(c, a, b, beta=2), "mn", "mk", "kn"),
    product("addmm, bias", lambda c, a, b: torch.addmm(c, a, b), "n", "mk", "kn",
            rows=("addmm",)),
    product("baddbmm", lambda c, a, b: torch.baddbmm(c, a, b), "bmn", "bmk", "bkn"),
    product("_addmm_activation", lambda c, a, b: torch._addmm_activation(c, a, b), "n", "mk", "kn"),
    product("_int_mm", _int_product, "mk", "kn", dtypes=("int8",)),
    product("complex mm", lambda a, b, c, d: torch.complex(a, b) @ torch.complex(c, d),
            "mk", "mk", "kn", "kn", rows=("mm",)),
    product("mv", torch.mv, "mk", "k", rows=("addmv",)),
    product("dot", torch.dot, "k", "k"),
    product("vdot", torch.vdot, "k", "k"),
    product("cdist backward", with_gradients(lambda a, b: torch.cdist(a, b, p=1.0)), "mk", "nk",
            rows=("_cdist_backward",), values="normal", rtol=1e-3),
    product("pdist backward", with_gradients(lambda a: F.pdist(a, p=2.0)), "mk",
            rows=("_pdist_backward",), values="normal", rtol=1e-3,
            work=lambda case: case["m"] ** 2 * case["k"]),
    product("addmv", lambda c, a, b: torch.addmv(c, a, b), "m", "mk", "k"),
    product("addr", lambda c, a, b: torch.addr(c, a, b), "mn", "m", "n"),
    product("addbmm", lambda c, a, b: torch.addbmm(c, a, b), "mn", "bmk", "bkn"),
    product("cdist", lambda a, b: torch.cdist(a, b, p=1.0), "mk", "nk",
            rows=("_cdist_forward",), values="normal", rtol=1e-4),
    product("pdist", lambda a: F.pdist(a, p=2.0) if len(a) > 1 else a, "mk",
            rows=("_pdist_forward",), values="normal", rtol=1e-4,
            work=lambda case: case["m"] ** 2 * case["k"]),
    product("cross", lambda a, b: torch.linalg.cross(a[..., :1].expand(-1, -1, 3),
            b[..., :1].expand(-1, -1, 3) + 1), "bmk", "bmk", rows=("linalg_cross",)),
)  # fmt: skip

# Tables of rows, and places in them.

TABLE = {"rows": (2, 10, 33), "columns": COMPANIONS, "places": (1, 7, 65)}


def table(values: str = "small", like: str = "rows") -> Make:
    """A table, places among its rows, and a table of as many rows as places."""

    def make(new: Operands, case: Case) -> tuple[Any, ...]:
        x = new(case["rows"], case["columns"], values=values)
        at = new(case["places"], values="index", most=case[like])
        return x, at, new(case["places"], case["columns"], values=values)

    return make


def of_table(name: str, run: Callable[..., Any], *rows: str, **more: Any) -> Call:
    more = {"rtol": 0.0, **more}
    return Call(name, "tables", table(), run, TABLE, rows or (name,), **more)


def whole_index(at: Tensor, y: Tensor) -> Tensor:
    return at[:, None].expand_as(y).contiguous()


def once(x: Tensor, at: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    """Places without repetition, and what goes there: the last one has no rule."""
    few = min(len(x), len(y))
    return torch.arange(few, device=x.device).flip(0), y[:few]


TABLES = (
    of_table("index_select", lambda x, at, y: x.index_select(0, at)),
    of_table("index_select of columns", lambda x, at, y: x.index_select(1, at % x.size(1)),
             "index_select"),
    of_table("gather", lambda x, at, y: x.gather(0, whole_index(at, y))),
    of_table("index", lambda x, at, y: x[at]),
    of_table("index of two", lambda x, at, y: x[at, at % x.size(1)], "index"),
    of_table("take", lambda x, at, y: x.take(at * x.size(1))),
    of_table("index_add", lambda x, at, y: x.index_add(0, at, y)),
    of_table("index_copy", lambda x, at, y: x.index_copy(0, *once(x, at, y))),
    of_table("index_fill", lambda x, at, y: x.index_fill(0, at, 7)),
    of_table("index_reduce", lambda x, at, y: x.index_reduce(0, at, y, "amax")),
    of_table("index_put", lambda x, at, y: x.index_put((at,), y, accumulate=True),
             "_index_put_impl_"),
    of_table("scatter", lambda x, at, y: x.scatter(0, whole_index(*once(x, at, y)),
             once(x, at, y)[1])),
    of_table("scatter_add", lambda x, at, y: x.scatter_add(0, whole_index(at, y), y)),
    of_table("scatter_reduce", lambda x, at, y: x.scatter_reduce(0, whole_index(at, y), y, "amax")),
    of_table("put", lambda x, at, y: x.contiguous().put(at * x.size(1), y[:, 0],
             accumulate=True)),
    of_table("embedding backward", lambda x, at, y: torch.ops.aten.embedding_dense_backward(
             y, at, len(x), -1, False), "embedding_dense_backward"),
    of_table("bincount", lambda x, at, y: torch.bincount(at, minlength=len(x))),
    of_table("isin", lambda x, at, y: torch.isin(at, at[: len(x)])),
    of_table("histc", lambda x, at, y: torch.histc(x, 4, -4, 4)),
    of_table("equal", lambda x, at, y: torch.equal(x, x)),
)  # fmt: skip

# Tensors from numbers, and random ones.

NUMBER = {"n": (5,)}


def number(new: Operands, case: Case) -> tuple[Any, ...]:
    return (new(case["n"]),)


def from_number(name: str, run: Callable[..., Any], *rows: str, **more: Any) -> Call:
    return Call(name, "ranges", number, run, NUMBER, rows or (name,), **more)


def on(x: Tensor) -> dict[str, Any]:
    return {"device": x.device, "dtype": x.dtype}


RANGES = (
    from_number("arange", lambda x: torch.arange(len(x), **on(x)), rtol=0.0),
    from_number("range", lambda x: torch.range(0, len(x) - 1, **on(x)), rtol=0.0),
    from_number("linspace", lambda x: torch.linspace(0, 1, len(x), **on(x))),
    from_number("logspace", lambda x: torch.logspace(0, 1, len(x), **on(x))),
    from_number("eye", lambda x: torch.eye(len(x), 7, **on(x)), rtol=0.0),
)  # fmt: skip


def drawn(name: str, run: Callable[[Tensor], Any], *rows: str) -> Call:
    return Call(name, "random", number, run, NUMBER, rows, reference="native")


RANDOM = (
    drawn("uniform_", lambda x: x.uniform_(), "xpurt::uniform_"),
    drawn("normal_", lambda x: x.normal_(), "xpurt::normal_"),
    drawn("log_normal_", lambda x: x.log_normal_(), "xpurt::log_normal_"),
    drawn("exponential_", lambda x: x.exponential_(), "xpurt::exponential_"),
    drawn("geometric_", lambda x: x.geometric_(0.3), "xpurt::geometric_"),
    drawn("cauchy_", lambda x: x.cauchy_(), "xpurt::cauchy_"),
    drawn("random_", lambda x: x.random_(0, 100), "xpurt::random_"),
    drawn("bernoulli_", lambda x: x.bernoulli_(0.3), "xpurt::bernoulli_"),
    drawn("bernoulli_ of a tensor", lambda x: x.clone().bernoulli_(x.sigmoid()),
          "xpurt::bernoulli_tensor_"),
    drawn("dropout", lambda x: F.dropout(x, 0.3), "xpurt::dropout"),
    drawn("rrelu", lambda x: F.rrelu(x, training=True), "xpurt::rrelu"),
    drawn("poisson", lambda x: torch.poisson(x.abs()), "xpurt::poisson"),
    drawn("binomial", lambda x: torch.binomial(x.abs().ceil(), x.sigmoid()), "xpurt::binomial"),
    drawn("multinomial", lambda x: torch.multinomial(x.abs() + 1, min(2, len(x))),
          "xpurt::race"),
    drawn("multinomial, with replacement", lambda x: torch.multinomial(x.abs() + 1, 5,
          replacement=True), "xpurt::choose", "xpurt::whole_weights"),
)  # fmt: skip

CALLS: tuple[Call, ...] = (
    *POINTWISE, *OF_ROWS, *LINES, *PRODUCTS, *TABLES, *RANGES, *RANDOM, *NETWORKS,
    *IMAGES, *TRAINING, *MATRICES, *TRANSFORMS, *PROGRAMS
)  # fmt: skip

# Rows that the sweep leaves out, and why.
OF_WEIGHTS = "tests/kernels/test_weight_norm.py"
NOT_SWEPT = {
    "_weight_norm_interface": OF_WEIGHTS,
    "_weight_norm_interface_backward": OF_WEIGHTS,
    "xpurt::exchange_rows": "a part of swept factorizations",
    "xpurt::lu_columns": "a part of swept factorizations",
    "_assert_async": "a single number",
    "_functional_assert_async": "a single number",
    "xpurt::assert_true": "a single number",
    "_native_multi_head_attention": "its parts are swept",
    "_transformer_encoder_layer_fwd": "its parts are swept",
    "_standard_gamma_grad": "tests/kernels/test_distributions.py",
    "xpurt::gamma": "tests/kernels/test_distributions.py",
    "xpurt::gamma_gradient": "tests/kernels/test_distributions.py",
    "ldexp": "a pointwise row as others",
    "xpurt::ldexp": "a pointwise row as others",
    "conj_physical": "PyTorch returns a real operand as it is",
    "_native_batch_norm_legit": "native_batch_norm's steps",
}  # fmt: skip
assert len({call.name for call in CALLS}) == len(CALLS)
