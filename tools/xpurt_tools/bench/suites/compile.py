"""Compiled programs: torch.compile of the same program on CPU tensors and on xpu."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch._inductor import config
from torch.nn import functional as F

from xpurt_tools.bench.auto.training import bert
from xpurt_tools.bench.models import GPT, gpt, resnet18
from xpurt_tools.bench.other_libraries import jax_call, onnxruntime_call, openvino_call
from xpurt_tools.bench.row import LARGE, SEED, Mean, Other, Row, Suite, Work, drawn
from xpurt_tools.bench.vision import convnext_atto, vit_tiny

# A network in evaluation mode, and its input.
Inference = tuple[nn.Module, Tensor]


def _resnet() -> Inference:
    return resnet18(10), torch.randn(16, 3, 32, 32)


def _gpt() -> Inference:
    model = GPT(vocabulary=1000, length=128, width=256, heads=8, layers=4)
    return model, torch.randint(1000, (8, 128))


def _bert() -> Inference:
    case = bert(8)
    return case.model, case.batch[0]


def _images(model: nn.Module) -> Inference:
    return model, torch.randn(2, 3, 224, 224)


NETWORKS: dict[str, Callable[[], Inference]] = {
    "ResNet-18": _resnet,
    "GPT": _gpt,
    "BERT": _bert,
    "ViT": lambda: _images(vit_tiny()),
    "ConvNeXt": lambda: _images(convnext_atto()),
}


def _network(name: str) -> Inference:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(SEED)
        model, x = NETWORKS[name]()
    return model.eval(), x


def _inference(
    name: str, dtype: torch.dtype, *, freezing: bool, openvino: float | None = None
) -> Row:
    """openvino: the largest allowed ratio to OpenVINO, which always freezes."""

    def prepare(device: torch.device) -> Work:
        model, x = _network(name)
        model = model.to(device, dtype)
        x = x.to(device, dtype if x.is_floating_point() else None)
        compiled = torch.compile(model)

        def call() -> object:
            with torch.no_grad():
                return compiled(x)

        # Only xpu's code is frozen: the row shows what a user gains by it. Dynamo reads
        # the setting, too, so an option of torch.compile is not enough.
        with config.patch(freezing=freezing and device.type != "cpu"):
            call()
        return Work(call, elements=LARGE)

    others: dict[str, Other] = {}
    if freezing or openvino is not None:
        others["OpenVINO"] = lambda: openvino_call(*_network(name), dtype)
    if freezing and dtype == torch.float32:
        others["ONNX Runtime"] = lambda: onnxruntime_call(*_network(name))
    kind = "bf16" if dtype == torch.bfloat16 else "f32"
    return Row(
        f"{name} {kind}{', frozen' if freezing else ''}",
        prepare,
        others=others,
        others_at_most={} if openvino is None else {"OpenVINO": openvino},
        long=name != "GPT" or freezing,
        compiled=True,
    )


def _training(device: torch.device, *, eager: bool = False) -> Work:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(SEED)
        case = gpt()
    case.model.to(device)
    batch = [each.to(device) for each in case.batch]
    steps = torch.optim.AdamW(case.model.parameters(), 1e-3)

    def plain(*batch: Tensor) -> Tensor:
        return case.loss(case.model, *batch)

    loss: Any = plain if eager else torch.compile(plain)

    def step() -> object:
        steps.zero_grad()
        value = loss(*batch)
        value.backward()
        steps.step()
        return value.detach()

    return Work(step, elements=LARGE)


def _transcendentals(x: Tensor) -> Tensor:
    for op in (torch.sin, torch.exp, torch.tanh, torch.cos, torch.sigmoid) * 2:
        x = op(x)
    return x


def _jax_transcendentals(jax: Any, x: Any) -> Any:
    np = jax.numpy
    for op in (np.sin, np.exp, np.tanh, np.cos, jax.nn.sigmoid) * 2:
        x = op(x)
    return x


def _cheap(x: Tensor) -> Tensor:
    for i in range(10):
        x = (x * 1.5 - 0.25).abs() if i % 2 else x + 0.5
    return x


def _norm_relu_add(x: Tensor, other: Tensor) -> Tensor:
    weight = torch.ones(x.shape[1], device=x.device)
    y = F.batch_norm(x, weight * 0.1, weight, weight, weight)
    return F.relu(y) + other


def _jax_layer_norm(jax: Any, x: Any) -> Any:
    centered = x - x.mean(-1, keepdims=True)
    return centered * jax.lax.rsqrt((centered**2).mean(-1, keepdims=True) + 1e-5)


def _jax_norm_relu_add(jax: Any, x: Any, other: Any) -> Any:
    return jax.nn.relu((x - 0.1) * (1 + 1e-5) ** -0.5 + 1) + other


def _tensors(
    shapes: tuple[tuple[int, ...], ...], device: torch.device | str
) -> list[Tensor]:
    return [each.to(device) for each in drawn(shapes, torch.float32)]


def _function(
    name: str,
    function: Callable[..., Tensor],
    *shapes: tuple[int, ...],
    jax: Callable[..., object] | None = None,
    at_most: float | None = None,
) -> Row:
    def prepare(device: torch.device) -> Work:
        tensors = _tensors(shapes, device)
        compiled = torch.compile(function)
        return Work(lambda: compiled(*tensors), elements=tensors[0].numel())

    others: Mapping[str, Other] = {}
    if jax is not None:
        others = {"JAX": lambda: jax_call(jax, _tensors(shapes, "cpu"))}
    return Row(name, prepare, others=others, at_most=at_most, compiled=True)


def _beside_eager(
    name: str, function: Callable[..., Tensor], shape: tuple[int, ...], at_most: float
) -> Row:
    def prepare(device: torch.device, *, eager: bool = False) -> Work:
        (x,) = _tensors((shape,), device)
        called = function if eager else torch.compile(function)
        return Work(lambda: called(x), elements=x.numel())

    beside = partial(prepare, eager=True)
    return Row(name, prepare, beside, at_most=at_most, compiled=True)


# The limits to OpenVINO, by network, dtype and freezing.
OPENVINO = {
    ("ResNet-18", torch.float32, True): 0.95,
    ("ResNet-18", torch.bfloat16, True): 1.05,
    ("GPT", torch.float32, False): 0.95,
    ("GPT", torch.bfloat16, False): 0.70,
}

# Functions that become one loop or a few.
LOOPS = (
    _function(
        "10 transcendentals, 16M",
        _transcendentals,
        (16 << 20,),
        jax=_jax_transcendentals,
        at_most=0.4,
    ),
    _function(
        "softmax 4096x4096",
        lambda x: x.softmax(-1),
        (4096, 4096),
        jax=lambda jax, x: jax.nn.softmax(x),
        at_most=1.0,
    ),
    _function(
        "layer norm 4096x1024",
        lambda x: F.layer_norm(x, (1024,)),
        (4096, 1024),
        jax=_jax_layer_norm,
        at_most=1.0,
    ),
    _function(
        "bias and GELU 4096x1024",
        lambda x, b: F.gelu(x + b),
        (4096, 1024),
        (1024,),
        jax=lambda jax, x, b: jax.nn.gelu(x + b, approximate=False),
        at_most=1.0,
    ),
    _function(
        "batch norm, ReLU, add",
        _norm_relu_add,
        *[(16, 64, 56, 56)] * 2,
        jax=_jax_norm_relu_add,
        at_most=1.0,
    ),
)

COMPILE = Suite(
    "compile",
    "torch.compile on CPU tensors and on xpu, f32 and bf16; frozen rows freeze xpu's "
    "parameters alone",
    target=1.0,
    row_limit=1.02,
    means=(Mean("*, frozen", 0.75),),
    processor=True,
    rows=(
        *(
            _inference(
                name,
                dtype,
                freezing=freezing,
                openvino=OPENVINO.get((name, dtype, freezing)),
            )
            for freezing in (False, True)
            for name in NETWORKS
            for dtype in (torch.float32, torch.bfloat16)
        ),
        Row("GPT step", _training, long=True, compiled=True),
        *LOOPS,
        _function(
            "add of 64 elements",
            lambda x, y: x + y,
            (64,),
            (64,),
            jax=lambda jax, x, y: x + y,
        ),
    ),
)

COMPILE_EAGER = Suite(
    "compile-eager",
    "torch.compile and eager mode, both on xpu in kernels of OpenCL C",
    target=0.8,
    processor=True,
    policy="sycl",
    beside="eager",
    rows=(
        _beside_eager("10 cheap ops, 4M", _cheap, (4 << 20,), 0.4),
        _beside_eager("10 transcendentals, 4M", _transcendentals, (4 << 20,), 0.4),
        Row(
            "GPT step",
            _training,
            partial(_training, eager=True),
            at_most=0.8,
            long=True,
            compiled=True,
        ),
    ),
)

COMPILE_SYCL = Suite(
    "compile-sycl",
    "torch.compile on CPU tensors, and on xpu in kernels of OpenCL C",
    target=1.0,
    processor=True,
    policy="sycl",
    rows=(
        *LOOPS,
        _function("sum of rows 4096x4096", lambda x: x.sum(0), (4096, 4096)),
        _function(
            "sum along the second of three 64x256x1024",
            lambda x: x.sum(1),
            (64, 256, 1024),
        ),
        _function("x + y.T 2048x2048", lambda x, y: x + y.T, *[(2048, 2048)] * 2),
        _function(
            "channels first 16x56x56x64",
            lambda x: x.permute(0, 3, 1, 2).contiguous() + 1,
            (16, 56, 56, 64),
        ),
        _function("add and ReLU, 64K", lambda x, y: F.relu(x + y), *[(1 << 16,)] * 2),
    ),
)
