"""Mixed precision for lazy tensors, in place of torch.autocast.

Note [Autocast of lazy tensors]
~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
PyTorch casts by a dispatch key of the device type, and lazy tensors have none:
torch.autocast("lazy") raises "unsupported scalarType". Here the functions of Python are
replaced, in the thread that enters the context. What a function calls in C++ is cast with
it: the matrix products of nn.LSTM are not.
"""

from typing import Any, Final

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils import _pytree as pytree

F = torch.nn.functional

# As for torch.autocast("xpu").
NARROW: Final[frozenset[Any]] = frozenset(
    {
        *(F.conv1d, F.conv2d, F.conv3d, torch.conv1d, torch.conv2d, torch.conv3d),
        *(F.conv_transpose1d, F.conv_transpose2d, F.conv_transpose3d, F.linear),
        *(torch.mm, torch.bmm, torch.mv, torch.matmul, torch.addmm, torch.addmv),
        *(torch.baddbmm, torch.addbmm, torch.chain_matmul, torch.linalg.multi_dot),
        *(Tensor.mm, Tensor.bmm, Tensor.mv, Tensor.matmul, Tensor.__matmul__),
        *(Tensor.__rmatmul__, Tensor.addmm, Tensor.baddbmm, Tensor.addbmm),
        F.scaled_dot_product_attention,
    }
)
WIDE: Final[frozenset[Any]] = frozenset(
    {
        *(torch.exp, torch.log, torch.log2, torch.log10, torch.log1p, torch.expm1),
        *(Tensor.exp, Tensor.log, torch.pow, Tensor.pow, Tensor.__pow__),
        *(torch.rsqrt, Tensor.rsqrt, torch.reciprocal, Tensor.reciprocal),
        *(F.softmax, F.log_softmax, torch.softmax, torch.log_softmax),
        *(Tensor.softmax, Tensor.log_softmax, F.softplus, F.gelu),
        *(F.layer_norm, F.group_norm, F.normalize, torch.norm, Tensor.norm),
        *(F.cross_entropy, F.nll_loss, F.mse_loss, F.l1_loss, F.smooth_l1_loss),
        *(
            F.kl_div,
            F.binary_cross_entropy_with_logits,
            F.huber_loss,
            F.poisson_nll_loss,
        ),
        *(F.cosine_similarity, F.cosine_embedding_loss, F.triplet_margin_loss),
        *(torch.sum, Tensor.sum, torch.prod, Tensor.prod, torch.cumsum, torch.cumprod),
        *(
            Tensor.cumsum,
            Tensor.cumprod,
            torch.cdist,
            torch.logsumexp,
            Tensor.logsumexp,
        ),
    }
)


class autocast(TorchFunctionMode):
    """A context in which products of matrices and convolutions of lazy tensors are
    computed in `dtype`, and sums, exponentials and losses in float32.

    Raises ValueError for a dtype other than bfloat16 and float16.
    """

    def __init__(self, dtype: torch.dtype = torch.bfloat16) -> None:
        super().__init__()
        if dtype not in (torch.bfloat16, torch.float16):
            raise ValueError(
                f"autocast takes torch.bfloat16 or torch.float16; found {dtype}"
            )
        self._dtype = dtype

    def __torch_function__(
        self, function: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        if function in NARROW:
            args, kwargs = _cast((args, kwargs), self._dtype)
        elif function in WIDE:
            args, kwargs = _cast((args, kwargs), torch.float32)
        return function(*args, **kwargs)


def _cast(tree: Any, dtype: torch.dtype) -> Any:
    def of(value: Any) -> Any:
        casts = (
            isinstance(value, Tensor)
            and value.device.type == "lazy"
            and value.dtype in (torch.float32, torch.float16, torch.bfloat16)
        )
        return value.to(dtype) if casts else value

    return pytree.tree_map(of, tree)
