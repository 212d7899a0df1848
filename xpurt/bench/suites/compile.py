"""Compiled programs: torch.compile of the same program on CPU tensors and on xpu."""

import importlib
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from xpurt.bench.auto.training import bert
from xpurt.bench.models import GPT, gpt, resnet18
from xpurt.bench.row import LARGE, SEED, Row, Suite, Unavailable, Work, drawn

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


def _of_timm(name: str) -> Callable[[], Inference]:
    """A network of timm with fresh weights, for images of 224x224."""

    def make() -> Inference:
        try:
            timm = importlib.import_module("timm")
        except ImportError:
            raise Unavailable("timm is not installed") from None
        return timm.create_model(name, pretrained=False), torch.randn(2, 3, 224, 224)

    return make


NETWORKS: dict[str, Callable[[], Inference]] = {
    "ResNet-18": _resnet,
    "GPT": _gpt,
    "BERT": _bert,
    "ViT": _of_timm("vit_tiny_patch16_224"),
    "ConvNeXt": _of_timm("convnext_atto"),
}


def _inference(name: str, dtype: torch.dtype, *, freezing: bool) -> Row:
    def prepare(device: torch.device) -> Work:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(SEED)
            model, x = NETWORKS[name]()
        model = model.to(device, dtype).eval()
        x = x.to(device, dtype if x.is_floating_point() else None)
        # Only xpu's code is frozen: the row shows what a user gains by it.
        options: Any = {"freezing": freezing and device.type != "cpu"}
        compiled = torch.compile(model, options=options)

        def call() -> object:
            with torch.no_grad():
                return compiled(x)

        return Work(call, elements=LARGE)

    kind = "bf16" if dtype == torch.bfloat16 else "f32"
    frozen = ", frozen" if freezing else ""
    return Row(
        f"{name} {kind}{frozen}", prepare, long=name != "GPT" or freezing, compiled=True
    )


def _gpt_step() -> Row:
    def prepare(device: torch.device) -> Work:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(SEED)
            case = gpt()
        case.model.to(device)
        batch = [each.to(device) for each in case.batch]
        steps = torch.optim.AdamW(case.model.parameters(), 1e-3)
        loss: Any = torch.compile(lambda *batch: case.loss(case.model, *batch))

        def step() -> object:
            steps.zero_grad()
            value = loss(*batch)
            value.backward()
            steps.step()
            return value.detach()

        return Work(step, elements=LARGE)

    return Row("GPT step", prepare, long=True, compiled=True)


def _transcendentals(x: Tensor) -> Tensor:
    for op in (torch.sin, torch.exp, torch.tanh, torch.cos, torch.sigmoid) * 2:
        x = op(x)
    return x


def _norm_relu_add(x: Tensor, other: Tensor) -> Tensor:
    weight = torch.ones(x.shape[1], device=x.device)
    y = F.batch_norm(x, weight * 0.1, weight, weight, weight)
    return F.relu(y) + other


def _function(
    name: str, function: Callable[..., Tensor], *shapes: tuple[int, ...]
) -> Row:
    def prepare(device: torch.device) -> Work:
        tensors = [each.to(device) for each in drawn(shapes, torch.float32)]
        compiled = torch.compile(function)
        return Work(lambda: compiled(*tensors), elements=tensors[0].numel())

    return Row(name, prepare, compiled=True)


COMPILE = Suite(
    "compile",
    "torch.compile on CPU tensors and on xpu, f32 and bf16; frozen rows freeze xpu's "
    "parameters alone",
    target=1.0,
    row_limit=1.02,
    rows=(
        *(
            _inference(name, dtype, freezing=freezing)
            for freezing in (False, True)
            for name in NETWORKS
            for dtype in (torch.float32, torch.bfloat16)
        ),
        _gpt_step(),
        _function("10 transcendentals, 16M", _transcendentals, (16 << 20,)),
        _function("softmax 4096x4096", lambda x: x.softmax(-1), (4096, 4096)),
        _function(
            "layer norm 4096x1024", lambda x: F.layer_norm(x, (1024,)), (4096, 1024)
        ),
        _function(
            "bias and GELU 4096x1024", lambda x, b: F.gelu(x + b), (4096, 1024), (1024,)
        ),
        _function("batch norm, ReLU, add", _norm_relu_add, *[(16, 64, 56, 56)] * 2),
        _function("add of 64 elements", lambda x, y: x + y, (64,), (64,)),
    ),
)
