"""Calls of tables, cells, optimizers and fused ops of networks."""

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
from xpurt_tools.conformance.sweeps.shapes_networks import network
from xpurt_tools.conformance.sweeps.shapes_operands import Operands

BAGS = {"width": (1, 5, 33), "bags": (1, 7, 65), "rows!": (3, 50)}


def bags(new: Operands, case: Case) -> tuple[Any, ...]:
    weight = new(case["rows"], case["width"])
    at = new(case["bags"], 3, values="index", most=case["rows"])
    return weight, at.contiguous(), new(case["bags"], 3)


CELL = {"hidden": (1, 5, 33), "batch": (1, 3, 17)}


def cell(gates: int) -> Make:
    def make(new: Operands, case: Case) -> tuple[Any, ...]:
        n, h = case["batch"], case["hidden"]
        return (new(n, gates * h), new(n, gates * h), new(n, h))

    return make


def lstm_cell(x: Tensor, hx: Tensor, c: Tensor) -> Tensor:
    made = torch.ops.aten._thnn_fused_lstm_cell(x, hx, c)
    return torch.cat([made[0], made[1]])


def on_cpu_by_formula(
    fused: Callable[..., Tensor], formula: Callable[..., Tensor]
) -> Callable[..., Tensor]:
    """PyTorch's CPU lacks the fused cells."""

    def run(*given: Tensor) -> Tensor:
        return (formula if given[0].device.type == "cpu" else fused)(*given)

    return run


def lstm_formula(x: Tensor, hx: Tensor, c: Tensor) -> Tensor:
    i, f, g, o = (x + hx).chunk(4, 1)
    new = f.sigmoid() * c + i.sigmoid() * g.tanh()
    return torch.cat([o.sigmoid() * new.tanh(), new])


def gru_formula(x: Tensor, hx: Tensor, h: Tensor) -> Tensor:
    (ri, ii, ni), (rh, ih, nh) = x.chunk(3, 1), hx.chunk(3, 1)
    n = (ni + (ri + rh).sigmoid() * nh).tanh()
    z = (ii + ih).sigmoid()
    return n + z * (h - n)


PARAMETER = {"n": (5,)}


def parameter(new: Operands, case: Case) -> tuple[Any, ...]:
    return new(case["n"]), new(case["n"])


def stepped(kind: Any, **options: Any) -> Callable[[Tensor, Tensor], Tensor]:
    def run(x: Tensor, grad: Tensor) -> Tensor:
        p = torch.nn.Parameter(x.contiguous().clone())
        optimizer = kind([p], lr=0.1, fused=True, **options)
        for _ in range(2):
            p.grad = grad.contiguous().clone()
            optimizer.step()
        return p.detach()

    return run


TRAINED = (
    *(network(f"embedding_bag {mode}", "tables", bags, with_gradients(run), BAGS,
              "_embedding_bag", "_embedding_bag_backward", "xpurt::embedding_bag",
              "xpurt::embedding_bag_backward", layouts=("contiguous",))
      for mode in ("sum", "mean", "max")
      for run in [lambda w, at, p, mode=mode: F.embedding_bag(at, w, mode=mode)]),
    network("embedding_bag, forward", "tables", bags,
            lambda w, at, p: F.embedding_bag(at, w), BAGS, "_embedding_bag_forward_only"),
    network("embedding_bag, weighted", "tables", bags,
            with_gradients(lambda w, at, p: F.embedding_bag(at, w, mode="sum",
                           per_sample_weights=p.contiguous()), 0, 2),
            BAGS, "_embedding_bag", "_embedding_bag_per_sample_weights_backward", layouts=("contiguous",)),
    network("lstm cell", "cells", cell(4), with_gradients(
            on_cpu_by_formula(lstm_cell, lstm_formula), 0, 1, 2), CELL, "_thnn_fused_lstm_cell",
            "_thnn_fused_lstm_cell_backward_impl",
            most=1 << 16),
    network("gru cell", "cells", cell(3), with_gradients(on_cpu_by_formula(
            lambda *each: torch.ops.aten._thnn_fused_gru_cell(*each)[0], gru_formula), 0, 1, 2),
            CELL, "_thnn_fused_gru_cell", "_thnn_fused_gru_cell_backward"),
    network("adam", "optimizers", parameter, stepped(torch.optim.Adam), PARAMETER,
            "_fused_adam_", "xpurt::adam"),
    network("adamw", "optimizers", parameter, stepped(torch.optim.AdamW, amsgrad=True),
            PARAMETER, "_fused_adamw_", "xpurt::adam"),
    network("sgd", "optimizers", parameter, stepped(torch.optim.SGD, momentum=0.9), PARAMETER,
            "_fused_sgd_", "xpurt::sgd"),
    network("adagrad", "optimizers", parameter, stepped(torch.optim.Adagrad), PARAMETER,
            "_fused_adagrad_", "xpurt::adagrad"),
)  # fmt: skip

# Fused ops of transformers, and scaled gradients.

MATRIX = {"columns": (4, 33, 130), "rows": COMPANIONS}
PAIRS = {"pairs": (1, 5, 33), "tokens": (1, 7, 33), "heads!": (1, 3)}
PAGES = {"tokens": (1, 5, 33), "sequences": (1, 3), "heads!": (2, 6)}


def matrices(new: Operands, case: Case) -> tuple[Any, ...]:
    shape = case["rows"], case["columns"]
    return new(*shape), new(*shape), new(case["columns"])


def swiglu(gate: Tensor, up: Tensor, weight: Tensor) -> Tensor:
    if gate.device.type == "cpu":
        return F.silu(gate) * up
    made: Tensor = torch.ops.xpurt.swiglu(gate, up)
    return made


def rms_norm_add(x: Tensor, residual: Tensor, weight: Tensor) -> Tensor:
    if x.device.type == "cpu":
        added = x + residual
        return torch.cat([F.rms_norm(added, weight.shape, weight, 1e-5), added])
    return torch.cat(torch.ops.xpurt.rms_norm_add(x, residual, weight, 1e-5))


def rotary(new: Operands, case: Case) -> tuple[Any, ...]:
    size = 2 * case["pairs"]
    q, k = (new(2, case["tokens"], case["heads"], size) for _ in range(2))
    return (
        q,
        k,
        new(case["tokens"], 1, case["pairs"]),
        new(case["tokens"], 1, case["pairs"]),
    )


def rotated(interleaved: bool) -> Callable[..., Tensor]:
    def run(q: Tensor, k: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        if q.device.type != "cpu":
            return torch.cat(
                torch.ops.xpurt.rotary_embedding(q, k, cos, sin, interleaved)
            )
        form = (-1, 2) if interleaved else (2, -1)
        axis = -1 if interleaved else -2
        made = []
        for x in (q, k):
            first, second = x.view(*x.shape[:-1], *form).unbind(axis)
            parts = first * cos - second * sin, second * cos + first * sin
            made.append(torch.stack(parts, axis).flatten(-2))
        return torch.cat(made)

    return run


def pages(new: Operands, case: Case) -> tuple[Any, ...]:
    """Each sequence has its own pages of 4 tokens, the last first."""
    many = -(-case["tokens"] // 4)
    sequences = case["sequences"]
    tables = torch.arange(many * sequences).view(sequences, many).flip(1)
    keys = new(many * sequences, 4, 2, 8), new(many * sequences, 4, 2, 8)
    query = new(sequences, case["heads"], 8).contiguous()
    lengths = torch.full((sequences,), case["tokens"])
    return (query, *(each.contiguous() for each in keys), tables, lengths)


def paged(
    q: Tensor, keys: Tensor, values: Tensor, tables: Tensor, lengths: Tensor
) -> Tensor:
    if q.device.type != "cpu":
        made: Tensor = torch.ops.xpurt.paged_attention(
            q, keys, values, tables, lengths, 0.3
        )
        return made
    count, shared = int(lengths[0]), q.shape[1] // keys.shape[2]
    k, v = (
        each[tables].flatten(1, 2)[:, :count].repeat_interleave(shared, 2)
        for each in (keys, values)
    )
    weights = torch.einsum("bhe,bthe->bht", q, k).mul(0.3).softmax(-1)
    return torch.einsum("bht,bthe->bhe", weights, v)


def scaled(x: Tensor, grad: Tensor) -> Tensor:
    found, inverse = (torch.full((1,), each, device=x.device) for each in (0.0, 0.5))
    given = grad.contiguous().clone()
    torch._amp_foreach_non_finite_check_and_unscale_([given], found, inverse)
    scale, grown = inverse.clone().to(x.device), found.int()
    torch._amp_update_scale_(scale, grown, found, 2.0, 0.5, 1)
    return torch.cat([given, found.to(given.dtype), scale.to(given.dtype)])


def layer(kind: Any, gates: int) -> Callable[..., tuple[Tensor, ...]]:
    def run(x: Tensor, hx: Tensor, h: Tensor) -> Tensor:
        batch, size = h.shape
        made = kind(size, size).to(x.device, x.dtype)
        with torch.no_grad():
            for number, each in enumerate(made.parameters()):
                steps = torch.arange(each.numel(), dtype=each.dtype) + number
                each.copy_((steps % 7 - 3).view(each.shape) * 0.1)
        steps_in = x[:, : gates * size].reshape(batch, gates, size).transpose(0, 1)
        result: Tensor = made(steps_in)[0]
        return result

    return with_gradients(run)


FUSED = (
    network("swiglu", "fused", matrices, with_gradients(swiglu, 0, 1), MATRIX,
            "xpurt::swiglu_out", "xpurt::swiglu_backward_out"),
    network("rms_norm_add", "fused", matrices, with_gradients(rms_norm_add, 0, 1, 2), MATRIX,
            "xpurt::rms_norm_add_out", "xpurt::rms_norm_add_backward_out", rtol=1e-3),
    network("rotary, adjacent", "fused", rotary, with_gradients(rotated(True), 0, 1), PAIRS,
            "xpurt::rotate_out"),
    network("rotary, halves", "fused", rotary, with_gradients(rotated(False), 0, 1), PAIRS,
            "xpurt::rotate_out"),
    network("paged attention", "fused", pages, paged, PAGES, "xpurt::paged_attention_out",
            most=1 << 16),
    network("unscale", "optimizers", parameter, scaled, PARAMETER,
            "_amp_foreach_non_finite_check_and_unscale_", "_amp_update_scale_",
            "xpurt::unscale"),
    network("lstm layer", "cells", cell(4), layer(torch.nn.LSTM, 4), CELL, "xpurt::lstm_layer",
            "xpurt::lstm_layer_backward",
            rtol=1e-3, most=1 << 12),
    network("gru layer", "cells", cell(3), layer(torch.nn.GRU, 3), CELL, "xpurt::gru_layer",
            "xpurt::gru_layer_backward",
            rtol=1e-3, most=1 << 12),
)  # fmt: skip

TRAINING: Sequence[Call] = (*TRAINED, *FUSED)
