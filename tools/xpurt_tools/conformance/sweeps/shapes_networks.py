"""Calls of networks: attention, normalization, images, losses, cells, optimizers."""

from collections.abc import Callable, Sequence
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
from xpurt_tools.conformance.sweeps.shapes_operands import UNEQUAL, Operands


def network(
    name: str, kind: str, make: Make, run: Callable[..., Any], axes: Any, *rows: str, **more: Any
) -> Call:  # fmt: skip
    return Call(name, kind, make, run, axes, rows or (name,), **{"rtol": 1e-4, **more})


# Attention.

HEADS = {
    "queries": (1, 5, 33, 70),
    "keys": (1, 5, 33, 70),
    "size!": (8, 15, 16, 17, 33, 64),
    "batch!": (1, 2),
    "heads!": (1, 3),
}


def heads(new: Operands, case: Case) -> tuple[Any, ...]:
    def one(tokens: str) -> Tensor:
        """PyTorch takes its fused kernels if the elements of a head are adjacent."""
        before = (case["batch"], case[tokens], case["heads"], case["size"])
        if case.parts == 1:
            before = (case["batch"], case["heads"], case[tokens], case["size"])
            return new(*before, layout="contiguous")
        return new(*before, layout="contiguous").transpose(1, 2)

    return one("queries"), one("keys"), one("keys")


def masked_heads(new: Operands, case: Case) -> tuple[Any, ...]:
    mask = new(case["batch"], 1, case["queries"], case["keys"])
    return (*heads(new, case), mask)


def of_heads(case: Case) -> int:
    return case["queries"] * case["keys"] * case["size"] * case["batch"] * case["heads"]


ATTENTION = tuple(
    network(name, "attention", make, run, HEADS,
            f"_scaled_dot_product_flash_attention_for_cpu{'_backward' * ('back' in name)}",
            work=of_heads, most=1 << 21)
    for name, make, run in (
        ("attention", heads, F.scaled_dot_product_attention),
        ("causal attention", heads,
         lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True)),
        ("masked attention", masked_heads,
         lambda q, k, v, m: F.scaled_dot_product_attention(q, k, v, m)),
        ("attention backward", heads,
         with_gradients(F.scaled_dot_product_attention, 0, 1, 2)),
    )
)  # fmt: skip

# Normalization.

NORM = {"line": (3, 33, 130), "outer": COMPANIONS}
CHANNELS = {"pixels": (1, 9, 33), "channels": (1, 3, 17), "images": (1, 2, 5, 33)}


def norm_line(new: Operands, case: Case) -> tuple[Any, ...]:
    n = case["line"]
    return new(*case.dims("outer"), n), new(n, values="unit"), new(n)


def layer_norm(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    return F.layer_norm(x, x.shape[-1:], weight, bias)


def channels(new: Operands, case: Case) -> tuple[Any, ...]:
    c = case["channels"]
    x = new(case["images"], c, case["pixels"])
    return x, new(c, values="unit"), new(c), new(c), new(c, values="unit")


def batch_norm(x: Tensor, w: Tensor, b: Tensor, mean: Tensor, var: Tensor) -> Tensor:
    return F.batch_norm(x, None, None, w, b, training=True)


def batch_norm_running(*given: Tensor) -> tuple[Tensor, ...]:
    x, w, b, mean, var = (each.contiguous().clone() for each in given)
    made = F.batch_norm(x, mean, var, w, b, training=True)
    again = torch.ops.aten._native_batch_norm_legit(x, w, b, mean, var, True, 0.1, 1e-5)
    return made, mean, var, F.batch_norm(x, mean, var, w, b), *again


def group_norm(x: Tensor, w: Tensor, b: Tensor, mean: Tensor, var: Tensor) -> Tensor:
    groups = next(n for n in (3, 2, 5, 1) if x.size(1) % n == 0)
    return F.group_norm(x, groups, w, b)


NORMS = (
    network("layer_norm", "normalization", norm_line, layer_norm, NORM, "native_layer_norm"),
    network("layer_norm backward", "normalization", norm_line,
            with_gradients(layer_norm, 0, 1, 2), NORM, "native_layer_norm_backward"),
    network("batch_norm", "normalization", channels, batch_norm_running, CHANNELS,
            "native_batch_norm", "_native_batch_norm_legit", layouts=UNEQUAL),
    network("batch_norm backward", "normalization", channels,
            with_gradients(batch_norm, 0, 1, 2), CHANNELS, "native_batch_norm_backward",
            rtol=1e-3, layouts=UNEQUAL),
    network("group_norm", "normalization", channels, group_norm, CHANNELS,
            "native_group_norm"),
    network("group_norm backward", "normalization", channels,
            with_gradients(group_norm, 0, 1, 2), CHANNELS, "native_group_norm_backward",
            rtol=1e-3),
)  # fmt: skip

# Losses.

CLASSES = {"classes": (2, 5, 33), "samples": COMPANIONS}


def classes(new: Operands, case: Case) -> tuple[Any, ...]:
    x = new(case["samples"], case["classes"])
    return x, new(case["samples"], values="index", most=case["classes"])


def loss(name: str, run: Callable[..., Any], *rows: str, **more: Any) -> Call:
    return network(name, "losses", classes, with_gradients(run), CLASSES, *rows, **more)


def _labels(x: Tensor, at: Tensor) -> Tensor:
    """For each sample one label, and the end of its list."""
    found = torch.full_like(x, -1, dtype=torch.int64)
    found[:, 0] = at
    return found


def _ctc(x: Tensor, at: Tensor) -> Tensor:
    time, size = x.shape
    labels = 1 + torch.arange(min(3, time), device=x.device) % max(size - 1, 1)
    return F.ctc_loss(
        x.log_softmax(1)[:, None],
        labels[None],
        torch.tensor([time]),
        torch.tensor([len(labels)]),
        reduction="sum",
    )


LOSSES = (
    loss("nll_loss", F.nll_loss, "nll_loss_forward", "nll_loss_backward"),
    loss("nll_loss of each", lambda x, at: F.nll_loss(x, at, reduction="none"),
         "nll_loss_forward"),
    loss("nll_loss2d", lambda x, at: F.nll_loss(x.t()[None, :, :, None].contiguous(),
         at[None, :, None]), "nll_loss2d_forward", "nll_loss2d_backward"),
    loss("multi_margin_loss", F.multi_margin_loss, "multi_margin_loss",
         "multi_margin_loss_backward", rtol=2e-3),  # as a sum in a row: the CPU's, too
    loss("multilabel_margin_loss", lambda x, at: F.multilabel_margin_loss(x, _labels(x, at)),
         "multilabel_margin_loss_forward", "multilabel_margin_loss_backward"),
    loss("mse_loss", lambda x, at: F.mse_loss(x, x.detach() * 0.5 + 1), "mse_loss",
         "mse_loss_backward"),
    loss("smooth_l1_loss", lambda x, at: F.smooth_l1_loss(x, x.detach() * 0.5),
         "smooth_l1_loss", "smooth_l1_loss_backward"),
    loss("huber_loss", lambda x, at: F.huber_loss(x, x.detach() * 0.5), "huber_loss",
         "huber_loss_backward"),
    loss("binary_cross_entropy", lambda x, at: F.binary_cross_entropy(x.sigmoid(),
         (x.detach() > 0).to(x.dtype)), "binary_cross_entropy", "binary_cross_entropy_backward",
         "xpurt::cross_entropies", "xpurt::check_targets"),
    network("ctc_loss", "losses", classes, with_gradients(_ctc), CLASSES, "_ctc_loss",
            "_ctc_loss_backward", "xpurt::ctc_loss", "xpurt::ctc_loss_backward",
            most=1 << 14, rtol=1e-2, reference="same"),
)  # fmt: skip

NETWORKS: Sequence[Call] = (*ATTENTION, *NORMS, *LOSSES)
