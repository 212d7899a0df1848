"""Arguments that do not fit raise what they raise on the CPU, whatever would run the op."""

from collections.abc import Callable

import pytest
import torch
from torch.nn import functional as F

import xpurt
from xpurt.testing import agree

Function = Callable[..., object]

X = torch.ones(5, 3)
INDEX = torch.tensor([0, 1])
BY_ELEMENT = torch.zeros(1, 3, dtype=torch.int64)
ROWS = torch.ones(2, 3)
DOUBLES = ROWS.double()
HALVES, BYTES = torch.ones(3).half(), torch.ones(3, dtype=torch.uint8)
aten = torch.ops.aten

CASES: dict[str, tuple[Function, tuple[torch.Tensor, ...]]] = {
    "a negative parameter": (lambda x: F.softshrink(x, -0.5), (X,)),
    "a dimension too few": (lambda x: F.max_pool2d(x, 2), (X,)),
    "a complex number for integers": (
        lambda x, mask, value: x.masked_fill(mask, value),
        (torch.ones(2, dtype=torch.int64), torch.ones(()).bool(), torch.tensor(1j)),
    ),
    "weights of two of three classes": (
        lambda x, target, weight: F.cross_entropy(x, target, weight),
        (X, torch.zeros(5, dtype=torch.int64), torch.ones(2)),
    ),
    "a clamp without bounds": (lambda x: x.clamp(), (X,)),
    "a clamp in place without bounds": (lambda x: x.clamp_(), (X,)),
    "smooth_l1_loss of a negative beta": (
        lambda x, y: aten.smooth_l1_loss(x, y, 1, -1.0),
        (X, X),
    ),
    "huber_loss of a negative delta": (
        lambda x, y: aten.huber_loss(x, y, 1, -1.0),
        (X, X),
    ),
    "an unknown reduction": (
        lambda x, index, y: x.index_reduce(0, index, y, "sum"),
        (X, INDEX, ROWS),
    ),
    "an index of floats": (
        lambda x, index, y: x.index_add_(0, index, y),
        (X, INDEX.float(), ROWS),
    ),
    "isin of bools": (torch.isin, (X > 0, X > 0)),
    "too few elements": (
        lambda x, mask, y: x.masked_scatter(mask, y),
        (X, X > 0, ROWS),
    ),
    "halves beside floats in attention": (
        F.scaled_dot_product_attention,
        (torch.ones(1, 2, 4, 8), torch.ones(1, 2, 4, 8).half(), torch.ones(1, 2, 4, 8)),
    ),
}

# Sources of another dtype than the tensor that they are written to.
OTHER_TYPES: dict[str, Function] = {
    "index_add": lambda x, index, y: x.index_add(0, index, y),
    "index_add_": lambda x, index, y: x.index_add_(0, index, y),
    "index_copy": lambda x, index, y: x.index_copy(0, index, y),
    "index_reduce": lambda x, index, y: x.index_reduce(0, index, y, "prod"),
    "index_put": lambda x, index, y: x.index_put((index,), y),
    "index_put_": lambda x, index, y: x.index_put_((index,), y, True),
    "put": lambda x, index, y: x.put(index, y[:, 0]),
}
for name, function in OTHER_TYPES.items():
    CASES[f"doubles in {name}"] = (function, (X, INDEX, DOUBLES))
CASES["doubles in scatter"] = (
    lambda x, index, y: x.scatter(0, index, y),
    (X, BY_ELEMENT, DOUBLES),
)
CASES["doubles in scatter_add_"] = (
    lambda x, index, y: x.scatter_add_(0, index, y),
    (X, BY_ELEMENT, DOUBLES),
)
for dtype in (torch.float64, torch.float16, torch.int64):
    CASES[f"attention with a mask of {dtype}"] = (
        lambda q, mask: F.scaled_dot_product_attention(q, q, q, attn_mask=mask),
        (torch.ones(1, 2, 4, 8), torch.ones(4, 4, dtype=dtype)),
    )

# Numbers that the CPU converts to the dtype of a tensor, and refuses beyond its range.
BEYOND: dict[str, Function] = {
    "fill_": lambda x, v: x.fill_(v),
    "full_like": lambda x, v: torch.full_like(x, v),
    "masked_fill_": lambda x, v: x.masked_fill_(x > 0, v),
    "clamp": lambda x, v: x.clamp(v),
    "threshold": lambda x, v: F.threshold(x, v, v),
    "pad": lambda x, v: F.pad(x, (1, 1), value=v),
    "index_fill_": lambda x, v: x.index_fill_(0, torch.zeros_like(x).long()[:1], v),
    "scatter_": lambda x, v: x.scatter_(0, torch.zeros_like(x).long()[:1], v),
    "index_add": lambda x, v: x.index_add(
        0, torch.zeros_like(x).long()[:1], x[:1], alpha=v
    ),
    "add": lambda x, v: torch.add(x, x, alpha=v),
}
for name, function in BEYOND.items():
    CASES[f"1e30 as float16 in {name}"] = (
        lambda x, function=function: function(x, 1e30),
        (HALVES,),
    )
for name in ("fill_", "index_fill_", "scatter_", "index_add"):
    CASES[f"300 as uint8 in {name}"] = (
        lambda x, function=BEYOND[name]: function(x, 300),
        (BYTES,),
    )
    CASES[f"1e39 as float32 in {name}"] = (
        lambda x, function=BEYOND[name]: function(x, 1e39),
        (torch.ones(3),),
    )


for name in ("alpha", "beta"):
    CASES[f"addmm with {name} of 1e300"] = (
        lambda x, name=name: torch.addmm(x, x, x, **{name: 1e300}),
        (torch.ones(3, 3),),
    )
CASES["addmm into an expanded tensor"] = (
    lambda x, y: x.expand(3, 3).addmm_(y, y),
    (torch.ones(1, 1), torch.ones(3, 3)),
)


def of_windows(op: str, axes: int, **options: int) -> tuple[Function, ...]:
    sizes = [5] * axes

    def call(x: torch.Tensor, *weight: torch.Tensor) -> torch.Tensor:
        return getattr(F, f"{op}{axes}d")(x, *(weight or (2,)), **options)

    weight = (torch.ones(2, 2, *[3] * axes),) if "conv" in op else ()
    return call, (torch.ones(1, 2, *sizes), *weight)


for axes in (1, 2, 3):
    for op in ("conv", "conv_transpose", "max_pool"):
        for dilation in (0, -1):
            CASES[f"{op}{axes}d with a dilation of {dilation}"] = of_windows(
                op, axes, dilation=dilation
            )
    for padding in (1, 5):
        CASES[f"conv_transpose{axes}d with an output_padding of {padding}"] = (
            of_windows("conv_transpose", axes, output_padding=padding)
        )

MODES = (("linear", 1), ("bilinear", 2), ("bicubic", 2), ("trilinear", 3))
for mode, axes in MODES:
    for channels, size in ((4, 0), (0, 3)):
        CASES[f"{mode} interpolation of {channels} channels of size {size}"] = (
            lambda x, mode=mode, axes=axes: F.interpolate(x, [3] * axes, mode=mode),
            (torch.ones(2, channels, *[size] * axes),),
        )


@pytest.mark.parametrize("policy", ["auto", "sycl"])
@pytest.mark.parametrize("name", CASES)
def test_the_error_is_the_cpu_s(name: str, policy: str, xpu: torch.device) -> None:
    function, arguments = CASES[name]
    with xpurt.kernel_policy(policy), pytest.raises(RuntimeError) as error:
        agree(function, *arguments, device=xpu)
    with pytest.raises(RuntimeError) as of_cpu:
        function(*arguments)
    assert str(error.value) == str(of_cpu.value)


# For convolutions that the checks above are near to.
@pytest.mark.parametrize("axes", [1, 2])
def test_an_output_padding_below_stride_or_dilation(
    axes: int, xpu: torch.device
) -> None:
    with xpurt.kernel_policy("sycl"):
        for options in ({"stride": 2}, {"dilation": 2}):
            call, arguments = of_windows(
                "conv_transpose", axes, output_padding=1, **options
            )
            agree(call, *arguments, device=xpu)


def waited_for(op: Function, *arguments: torch.Tensor, **options: str) -> None:
    op(*arguments, **options)
    torch.xpu.synchronize()


@pytest.mark.parametrize("wrong", [1.5, -0.5, float("nan")])
@pytest.mark.parametrize("operand", ["input", "target"])
def test_binary_cross_entropy_beyond_0_to_1(
    operand: str, wrong: float, xpu: torch.device
) -> None:
    """A kernel finds it, so it is raised at the next wait."""
    right, other = torch.tensor([0.5, 0.25]), torch.tensor([0.5, wrong])
    x, y = (other, right) if operand == "input" else (right, other)
    with pytest.raises(RuntimeError) as of_cpu:
        F.binary_cross_entropy(x, y)
    with xpurt.kernel_policy("sycl"), pytest.raises(RuntimeError) as error:
        waited_for(F.binary_cross_entropy, x.to(xpu), y.to(xpu))
    torch.xpu.synchronize()
    assert str(error.value).startswith(str(of_cpu.value))


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
@pytest.mark.parametrize("wrong", [-1, 4, 2**40])
@pytest.mark.parametrize("policy", ["native", "sycl"])
def test_a_bag_with_a_wrong_index(
    policy: str, wrong: int, mode: str, xpu: torch.device
) -> None:
    """PyTorch's kernels read beyond the table, which may end the process."""
    table = torch.ones(4, 3, device=xpu)
    indices = torch.tensor([[0, wrong]]).to(xpu)
    with (
        xpurt.kernel_policy(policy),
        pytest.raises((IndexError, RuntimeError), match="Expected idx >= 0"),
    ):
        waited_for(F.embedding_bag, indices, table, mode=mode)
    torch.xpu.synchronize()


@pytest.mark.parametrize("wrong", [-1, 4, 2**40])
@pytest.mark.parametrize("policy", ["native", "sycl"])
def test_a_wrong_label(policy: str, wrong: int, xpu: torch.device) -> None:
    """PyTorch's kernel reads beyond the probabilities."""
    x = torch.ones(5, 2, 4).log_softmax(-1).to(xpu)
    targets = torch.tensor([[1, wrong], [2, wrong]]).to(xpu)
    lengths = torch.tensor([5, 5])
    with xpurt.kernel_policy(policy):
        with pytest.raises(RuntimeError, match="Expected labels >= 0"):
            waited_for(F.ctc_loss, x, targets, lengths, torch.tensor([2, 1]))
        torch.xpu.synchronize()
        # Behind the end of a target it does not count.
        loss = F.ctc_loss(x, targets, lengths, torch.tensor([1, 1]))
    assert loss.isfinite()


def test_a_count_per_rank(xpu: torch.device) -> None:
    means = torch.ones(2, 3, device=xpu)
    for counts in (torch.ones(1), torch.ones(3), torch.ones(2, 1)):
        with pytest.raises(RuntimeError, match="expects a count per rank"):
            torch.batch_norm_gather_stats_with_counts(
                means, means, means, None, None, 0.1, 1e-5, counts.to(xpu)
            )


WRONG_OPERANDS: dict[str, tuple[Callable[[torch.Tensor], torch.Tensor], int, str]] = {
    "on the CPU": (torch.Tensor.cpu, 4, "on the same device"),
    "sparse": (torch.Tensor.to_sparse, 4, "implemented|Could not run"),
    "integers": (torch.Tensor.long, 0, "implemented|unsupported data type"),
}


@pytest.mark.parametrize(("kind", "gates"), [("gru", 3), ("lstm", 4)])
@pytest.mark.parametrize("wrong", WRONG_OPERANDS)
def test_operands_of_a_recurrent_layer(
    wrong: str, kind: str, gates: int, xpu: torch.device
) -> None:
    """Integers in all of them, or one weight that is elsewhere or sparse."""
    made, first, message = WRONG_OPERANDS[wrong]
    sizes = [(3, 2, 4), (2, 4), (2, 4), (4 * gates, 4), (4 * gates, 4)]
    given = [torch.ones(size, device=xpu) for size in sizes]
    given = [made(x) if i >= first else x for i, x in enumerate(given)]
    states = given[1:3] if kind == "lstm" else [given[1], None]
    layer = getattr(torch.ops.xpurt, f"{kind}_layer")
    with xpurt.kernel_policy("sycl"), pytest.raises(RuntimeError, match=message):
        layer(given[0], *states, *given[3:], None, None, False, False)


def test_a_raw_convolution_has_an_output_padding_per_axis(xpu: torch.device) -> None:
    """PyTorch's function checks it before it calls this op."""
    x, weight = torch.ones(1, 2, 4, 4, device=xpu), torch.ones(2, 3, 2, 2, device=xpu)
    convolve = torch.ops.aten.convolution_overrideable
    lists = [2, 2], [0, 0], [1, 1]
    with xpurt.kernel_policy("sycl"):
        with pytest.raises(RuntimeError, match="expected output_padding to be"):
            convolve(x, weight, None, *lists, True, [1, 1, 1], 1)
        assert convolve(x, weight, None, *lists, True, [1, 1], 1).shape[2] == 9
