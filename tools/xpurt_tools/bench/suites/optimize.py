"""Optimized and quantized models for inference, and the same models in eager PyTorch on
CPU tensors, in float32."""

from collections.abc import Callable, Mapping
from functools import partial

import torch
from torch import Tensor, nn
from torch._inductor import config

import xpurt
from xpurt.optimization.primitives import types_of_cpu
from xpurt_tools.bench import networks
from xpurt_tools.bench.networks import Make, made
from xpurt_tools.bench.other_libraries import (
    onnxruntime_call,
    openvino_call,
    quantized_onnxruntime_call,
    quantized_openvino_call,
    torchao_call,
)
from xpurt_tools.bench.processor import at_most
from xpurt_tools.bench.row import LARGE, Other, Row, Suite, Unavailable, Work

Forward = Callable[[Tensor], object]


def _optimized(model: nn.Module, x: Tensor, dtype: torch.dtype) -> Forward:
    if x.device.type == "cpu" and dtype not in types_of_cpu():
        raise Unavailable(f"oneDNN computes no {dtype} on this processor")
    return xpurt.optimize(model, dtype=dtype, sample_input=x, inplace=True)


def _quantized(model: nn.Module, x: Tensor, kind: str) -> Forward:
    return xpurt.quantize(model, kind, calibration=[x], inplace=True)


def _in_blocks(model: nn.Module, x: Tensor) -> Forward:
    """As a user of torch.autocast writes it: a block around each call."""
    layout = torch.mkldnn  # type: ignore[attr-defined]

    def forward(x: Tensor) -> object:
        with xpurt.autocast(x.device.type, torch.bfloat16, layout=layout):
            return model(x)

    return forward


# What is done to a model, by the words of the rows' names.
FORMS: Mapping[str, Callable[[nn.Module, Tensor], Forward]] = {
    "f32": partial(_optimized, dtype=torch.float32),
    "bf16": partial(_optimized, dtype=torch.bfloat16),
    "int8": partial(_quantized, kind="static"),
    "autocast": _in_blocks,
    "int8 weights": partial(_quantized, kind="int8_weight_only"),
    "int4 weights": partial(_quantized, kind="int4_weight_only"),
}


def _work(network: Make, form: str, kind: str, device: torch.device) -> Work:
    """form: of FORMS, or "" for the model as it is."""
    model, x = made(network)
    model, x = model.to(kind), x.to(kind)
    forward = FORMS[form](model, x) if form else model

    def call() -> object:
        with torch.no_grad():
            return forward(x)

    return Work(call, elements=LARGE)


def _others(network: Make, form: str) -> dict[str, Other]:
    """The same model by other libraries, in the same type."""
    if form == "int8":
        return {
            "OpenVINO": lambda: quantized_openvino_call(*made(network)),
            "ONNX Runtime": lambda: quantized_onnxruntime_call(*made(network)),
        }
    if form in ("int8 weights", "int4 weights"):
        bits = 8 if form == "int8 weights" else 4
        return {"torchao": lambda: torchao_call(*made(network), bits)}
    dtype = torch.float32 if form == "f32" else torch.bfloat16
    others: dict[str, Other] = {
        "OpenVINO": lambda: openvino_call(*made(network), dtype)
    }
    if form == "f32":
        others["ONNX Runtime"] = lambda: onnxruntime_call(*made(network))
    return others


def inference_rows(
    name: str, network: Make, limits: Mapping[str, float | None]
) -> list[Row]:
    """limits: the largest allowed ratio of each form."""
    return [
        Row(
            f"{name} {form}, {kind} tensors",
            partial(_work, network, form, kind),
            partial(_work, network, "", "cpu"),
            others=_others(network, form) if kind == "xpu" else {},
            at_most=limit,
            long=True,
        )
        for form, limit in limits.items()
        for kind in ("cpu", "xpu")
    ]


def _compiled(network: Make, device: torch.device) -> Work:
    """Stock torch.compile of CPU tensors in bfloat16, with frozen parameters and images
    in channels last."""
    model, x = made(network)
    layout = torch.channels_last
    model.to(torch.bfloat16).to(memory_format=layout)  # type: ignore[call-overload]
    x = x.to(torch.bfloat16, memory_format=layout)
    compiled = torch.compile(model)

    def call() -> object:
        with torch.no_grad():
            return compiled(x)

    # Dynamo reads the setting, too, so an option of torch.compile is not enough.
    with config.patch(freezing=True):
        call()
    return Work(call, elements=LARGE)


def beside_compiled(name: str, network: Make, limit: float) -> Row:
    return Row(
        f"{name} bf16, xpu tensors",
        partial(_work, network, "bf16", "xpu"),
        partial(_compiled, network),
        at_most=limit,
        long=True,
        compiled=True,
    )


# Vector instructions compute products of bfloat16 at twice the rate of float32, and of
# int8 at four times it. The tiles of AMX are several times as fast.
F32 = {"f32": 0.65}
BF16 = at_most(with_amx=0.15, without=0.7)
INT8 = at_most(with_amx=0.12, without=0.5)
RESNET = {"f32": 0.65, "bf16": BF16, "autocast": BF16, "int8": INT8}
BERT = {
    "f32": 0.9,
    "bf16": at_most(with_amx=0.2, without=0.7),
    "autocast": at_most(with_amx=0.2, without=0.7),
    "int8": at_most(with_amx=0.18, without=0.5),
}
GPT = {"f32": 1.0, "bf16": 0.7, "autocast": 0.7}
WEIGHTS = {"int8 weights": 0.5, "int4 weights": 0.35}

OPTIMIZE = Suite(
    "optimize",
    "optimized models for inference, and eager PyTorch on CPU tensors in float32",
    target=1.0,
    processor=True,
    beside="stock",
    only_by_name=True,
    rows=(
        *inference_rows("ResNet-18", networks.resnet18, RESNET),
        *inference_rows("ResNet-50", networks.resnet50, RESNET),
        *inference_rows("BERT-base, 3 layers", networks.bert, BERT),
        *inference_rows("GPT", networks.gpt, GPT),
        *inference_rows("GPT-2, a token", networks.decoder, WEIGHTS),
    ),
)

OPTIMIZE_COMPILED = Suite(
    "optimize-compiled",
    "an optimized model, eager, and stock torch.compile with frozen parameters on CPU "
    "tensors; both in bf16 and channels last",
    target=1.3,
    processor=True,
    beside="compiled",
    only_by_name=True,
    rows=(beside_compiled("ResNet-18", networks.resnet18, 1.3),),
)
