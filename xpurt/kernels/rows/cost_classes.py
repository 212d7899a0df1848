"""Cost classes: ops that cost alike. One op of a class is measured for all of them."""

from xpurt.kernels.kinds.custom_kernel import CustomKernel
from xpurt.kernels.kinds.decomposed import Decomposed
from xpurt.kernels.kinds.row import Matmul, Reduction, Row, Softmax
from xpurt.kernels.rows.nn.attention import Attention
from xpurt.kernels.rows.nn.recurrent import Recurrent

# Instructions per element from which on they limit an op on a CPU, and no longer the
# memory.
_DEAR_FLOPS = 20

# Rows for which PyTorch has no vector code, by the beginnings of their names, and those of
# them for which it has.
_SPECIAL = ("special_", "digamma", "erfinv", "gcd", "i0", "igamma", "lcm", "mish_back")
_NOT_SPECIAL = ("special_entr", "special_xlog1py", "special_spherical_bessel_j0")

# Those of them that cost a third or three times as much as the others.
_SPECIAL_BY_NAME: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("incomplete_gamma", ("igamma", "special_zeta")),
    ("modified_bessel", ("i0", "special_i0", "special_i1", "special_modified")),
    ("modified_bessel", ("special_scaled", "special_airy", "erfinv")),
    ("polynomials", ("special_cheb", "special_shifted", "special_herm")),
    ("polynomials", ("special_bessel_j", "special_laguerre", "special_legendre")),
)

# Expensive ops with a class of their own. PyTorch has vector code for some of them, in
# some types, and no two of them cost alike.
OPS_OF_THEIR_OWN = (
    *("exp2", "expm1", "log", "log2", "log10", "log1p", "logaddexp", "xlogy"),
    *("sin", "cos", "tan", "asin", "acos", "atan", "atan2"),
    *("sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "hypot"),
    *("erf", "erfc", "sigmoid", "silu", "gelu", "mish", "elu", "softplus"),
    *("silu_backward", "gelu_backward", "pow", "remainder", "fmod", "lgamma"),
)

# Classes by the beginnings of the ops' names; the first match counts.
_BY_NAME: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("channel_norm", ("native_batch_norm_backward", "native_group_norm")),
    ("batch_norm", ("native_batch_norm", "_native_batch_norm")),
    ("line_norm", ("native_layer_norm",)),
    ("averaging", ("avg_pool", "_adaptive_avg", "adaptive_avg")),
    ("pooling", ("max_pool", "avg_pool", "_adaptive", "adaptive")),
    ("upsampling", ("upsample", "_upsample", "grid_sampler")),
    ("distance", ("_cdist", "_pdist")),
    ("gathering", ("gather", "index_select", "take")),
    ("scattering", ("scatter", "index_", "_index_put", "put", "embedding_dense")),
    ("indexing", ("index",)),
    ("scan", ("cum", "_cum", "_logcum")),
    ("padding", ("reflection_pad", "replication_pad")),
    ("rearranging", ("roll", "flip", "tril", "triu", "unfold_backward")),
    ("unfolding", ("im2col", "col2im")),
    ("unpooling", ("max_unpool",)),
    ("losses", ("nll_loss", "multi_margin", "multilabel_margin")),
    ("moments", ("var", "std")),
    ("dear", ("frexp", "log_sigmoid", "glu_backward", "_thnn_fused")),
    ("extremes", ("argmax", "argmin", "max", "min", "aminmax")),
    ("convolution", ("convolution",)),
)


def cost_class(
    row: Row
    | Reduction
    | Softmax
    | Matmul
    | CustomKernel
    | Decomposed
    | Attention
    | Recurrent,
) -> str:
    """The name of the row's class. An op that costs like no other is its own class."""
    if isinstance(row, Row):
        if row.aten in OPS_OF_THEIR_OWN:
            return row.aten
        if row.flops < _DEAR_FLOPS:
            return "cheap"
        is_special = row.aten.startswith(_SPECIAL) and row.aten not in _NOT_SPECIAL
        if not is_special:
            return "dear"
        return _first_match(_SPECIAL_BY_NAME, row.aten, "special")
    if isinstance(row, CustomKernel) and row.draws:
        return "draws"
    if isinstance(row, CustomKernel | Decomposed):
        return _first_match(_BY_NAME, row.aten, row.aten)
    return row.template


def _first_match(
    classes: tuple[tuple[str, tuple[str, ...]], ...], aten: str, otherwise: str
) -> str:
    for name, beginnings in classes:
        if aten.startswith(beginnings):
            return name
    return otherwise
