"""Operands that do not fit: the error has what was found, and what would fit."""

from typing import Any

import pytest
import torch

ops = torch.ops.xpurt


def tensor(*sizes: int, dtype: torch.dtype = torch.float32) -> Any:
    """Made on the device of the test."""
    return lambda device: torch.ones(sizes, dtype=dtype, device=device)


def integers(*sizes: int) -> Any:
    return tensor(*sizes, dtype=torch.int64)


def conv(**changed: Any) -> list[Any]:
    given = {
        "x": tensor(1, 2, 5), "weight": tensor(4, 2, 3), "bias": None, "bn_weight": None,
        "bn_bias": None, "running_mean": tensor(4), "running_var": tensor(4), "eps": 1e-5,
        "stride": [1], "padding": [0], "dilation": [1], "groups": 1, "activation": "none",
    }  # fmt: skip
    return [*{**given, **changed}.values()]


def loss(**changed: Any) -> list[Any]:
    given = {
        "hidden": tensor(3, 2), "weight": tensor(4, 2), "target": integers(3),
        "bias": None, "ignore_index": -100, "reduction": "mean", "smoothing": 0.0,
        "chunk_rows": 0,
    }  # fmt: skip
    return [*{**given, **changed}.values()]


def paged(**changed: Any) -> list[Any]:
    given = {
        "query": tensor(1, 4, 8), "keys": tensor(2, 3, 2, 8),
        "values": tensor(2, 3, 2, 8), "tables": integers(1, 2), "lengths": integers(1),
        "scale": 1.0,
    }  # fmt: skip
    return [*{**given, **changed}.values()]


BAD: list[tuple[str, list[Any], type[Exception], str]] = [
    ("linear_activation", [tensor(2, 3), tensor(4, 3), None, "gelo"], ValueError,
     r'has the activations none, relu, .*; found "gelo"\. Did you mean "gelu"\?'),
    ("linear_activation", [tensor(2, 3), tensor(4, 5)], ValueError,
     r"found x \[2, 3\] and a weight \[4, 5\]"),
    ("linear_activation", [tensor(2, 3), tensor(4, 3), tensor(3)], ValueError,
     r"adds a bias \[4\]; found \[3\]"),
    ("linear_activation", [integers(2, 3), integers(4, 3)], TypeError,
     r"floating-point tensors; found `x` of torch.int64"),
    ("linear_activation", [tensor(2, 3), tensor(4, 3, dtype=torch.float64)], TypeError,
     r"found `x` of torch.float32, `weight` of torch.float64"),
    ("conv_bn_activation", conv(activation="relu6"), ValueError, 'found "relu6"'),
    ("conv_bn_activation", conv(x=tensor(2, 5)), ValueError, r"found x \[2, 5\]"),
    ("conv_bn_activation", conv(groups=2), ValueError, r"in 2 groups does not fit"),
    ("conv_bn_activation", conv(groups=-1, x=tensor(1, 0, 5), weight=tensor(4, 0, 3)), ValueError,
     r"in -1 groups does not fit"),
    ("conv_bn_activation", conv(bn_bias=tensor(3)), ValueError,
     r"has a bn_bias \[4\]; found \[3\]"),
    ("conv_bn_activation", conv(stride=[1, 1]), ValueError,
     r"a stride of one number or of 1, each at least 1; found \[1, 1\]"),
    ("conv_bn_activation", conv(dilation=[0]), ValueError, r"found \[0\]"),
    ("conv_bn_activation", conv(dilation=[3]), ValueError, r"a window that is larger"),
    ("rotary_embedding", [tensor(5, 8), tensor(5, 8), tensor(5, 3), tensor(5, 4)],
     ValueError, r"of the same sizes; found \[5, 3\] and \[5, 4\]"),
    ("rotary_embedding", [tensor(*[1] * 9), tensor(2), tensor(1), tensor(1)],
     ValueError, r"of 1 to 8 dimensions; found `q`"),
    ("rotary_embedding", [tensor(5, 6), tensor(5, 6), tensor(5, 4), tensor(5, 4)],
     ValueError, r"2 \* pairs <= 6; found \[5, 4\] for `q`"),
    ("rotary_embedding", [tensor(5, 8), tensor(4, 8), tensor(5, 4), tensor(5, 4)],
     ValueError, r"found \[5, 4\] for `k` \[4, 8\]"),
    ("rms_norm_add", [tensor(2, 3), None, tensor(2)], ValueError,
     r"found x \[2, 3\] and a weight \[2\]"),
    ("rms_norm_add", [tensor(2, 3), tensor(3), tensor(3)], ValueError,
     r"a residual \[3\]\. Expand it"),
    ("swiglu", [tensor(2, 3), tensor(3)], ValueError, r"found `gate` \[2, 3\] and `up`"),
    ("swiglu", [integers(2), integers(2)], TypeError, "found `gate` of torch.int64"),
    ("fused_cross_entropy", loss(hidden=tensor(3, 1, 2)), ValueError,
     r"hidden \[3, 1, 2\]"),
    ("fused_cross_entropy", loss(target=integers(2)), ValueError, r"a target \[2\]"),
    ("fused_cross_entropy", loss(target=tensor(3)), TypeError,
     "labels of torch.int64 or torch.int32; found torch.float32"),
    ("fused_cross_entropy", loss(reduction="average"), ValueError, 'found "average"'),
    ("fused_cross_entropy", loss(smoothing=1.5), ValueError, "from 0 to 1; found 1.5"),
    ("fused_cross_entropy", loss(chunk_rows=-1), ValueError, "found -1"),
    ("paged_attention", paged(query=tensor(1, 3, 8)), ValueError,
     "found 3 heads of queries and 2 of keys"),
    ("paged_attention", paged(values=tensor(2, 3, 2, 4)), ValueError,
     r"a value_cache \[2, 3, 2, 4\]"),
    ("paged_attention", paged(tables=integers(2, 2)), ValueError, r"found \[2, 2\]"),
    ("paged_attention", paged(lengths=tensor(1)), TypeError,
     "`context_lengths` of torch.int32 or torch.int64; found torch.float32"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("op", "operands", "error", "text"),
    BAD,
    ids=[f"{row[0]}-{n}" for n, row in enumerate(BAD)],
)
def test_operands_that_do_not_fit(
    op: str,
    operands: list[Any],
    error: type[Exception],
    text: str,
    device: str,
    xpu: torch.device,
) -> None:
    given = [each(device) if callable(each) else each for each in operands]
    with pytest.raises(error, match=f"{op} .*{text}"):
        getattr(ops, op)(*given)
    with pytest.raises(error, match=f"{op} .*{text}"):  # in the compiler, too
        getattr(ops, op)(
            *(
                each.to("meta") if isinstance(each, torch.Tensor) else each
                for each in given
            )
        )


@pytest.mark.parametrize(
    ("op", "operands"),
    [
        ("linear_activation", [tensor(2, 3), tensor(4, 3)]),
        ("conv_bn_activation", conv()),
        ("rotary_embedding", [tensor(5, 8), tensor(5, 8), tensor(5, 4), tensor(5, 4)]),
        ("rms_norm_add", [tensor(2, 3), None, tensor(3)]),
        ("swiglu", [tensor(2), tensor(2)]),
        ("fused_cross_entropy", loss()),
        ("paged_attention", paged()),
    ],
)
@pytest.mark.parametrize("first", ["cpu", "xpu"])
def test_operands_on_two_devices(
    op: str, operands: list[Any], first: str, xpu: torch.device
) -> None:
    places = iter([first, *["xpu" if first == "cpu" else "cpu"] * 9])
    given = [each(next(places)) if callable(each) else each for each in operands]
    with pytest.raises(
        ValueError, match=rf"{op} has operands on one device; found `\w+` "
    ):
        getattr(ops, op)(*given)


def call_and_wait(op: str, given: list[Any]) -> None:
    getattr(ops, op)(*given)
    torch.xpu.synchronize()


def raises_index_error(op: str, arguments: list[Any], device: str, text: str) -> None:
    """At once for CPU tensors, and on xpu at the next wait."""
    given = [each(device) if callable(each) else each for each in arguments]
    # PyTorch's kernels, which may run on xpu, raise a RuntimeError.
    kind = IndexError if device == "cpu" else (IndexError, RuntimeError)
    with pytest.raises(
        kind, match=text if device == "cpu" else "out of (range|bounds)"
    ):
        call_and_wait(op, given)


def indices(*values: Any) -> Any:
    return lambda device: torch.tensor(values, device=device)


@pytest.mark.parametrize(
    ("tables", "length", "text"),
    [
        ([1, 2], 6, r"sequence 0 has the blocks \[1, 2\]; the cache has 2"),
        ([-1, 0], 1, r"sequence 0 has the blocks \[-1\]"),
        ([0, 1], 7, "the context of sequence 0 has 7 tokens; its 2 blocks hold 6"),
        ([0, 1], -1, "has -1 tokens"),
    ],
)
def test_blocks_that_are_not_there(
    tables: list[int], length: int, text: str, device: str, xpu: torch.device
) -> None:
    arguments = paged(tables=indices(tables), lengths=indices(length))
    raises_index_error("paged_attention", arguments, device, text)


def test_blocks_that_no_token_needs_are_not_read(
    device: str, xpu: torch.device
) -> None:
    given = paged(tables=indices([1, 99]), lengths=indices(3))
    made = ops.paged_attention(*(e(device) if callable(e) else e for e in given))
    torch.xpu.synchronize()
    assert torch.equal(made.cpu(), torch.ones(1, 4, 8))


@pytest.mark.parametrize("label", [4, -1])
def test_labels_that_are_no_classes(label: int, device: str, xpu: torch.device) -> None:
    arguments = loss(target=indices(0, label, 1))
    text = f"labels from 0 to 3, or -100 for a row to ignore; found {label}"
    raises_index_error("fused_cross_entropy", arguments, device, text)


def test_paged_attention_has_no_gradient(device: str, xpu: torch.device) -> None:
    given = [each(device) if callable(each) else each for each in paged()]
    given[0].requires_grad_()
    made = ops.paged_attention(*given)
    with pytest.raises(NotImplementedError, match="decoding and has no gradient"):
        made.sum().backward()
