"""A language model that reads a prompt and writes tokens, with weights in 8 and 4 bits, and
the same model in bfloat16 by eager PyTorch on CPU tensors."""

from collections.abc import Callable, Iterator, Mapping
from functools import partial

import torch
from torch import Tensor, nn

import xpurt
from xpurt_tools.bench.language_model import Call, Shape, made
from xpurt_tools.bench.llama_cpp import llama_cpp_call
from xpurt_tools.bench.row import LARGE, Other, Row, Suite, Work

Forward = Callable[[Tensor], object]
SHAPE = Shape()


def _as_it_is(model: nn.Module, text: Tensor) -> Forward:
    return model


def _optimized(model: nn.Module, text: Tensor) -> Forward:
    return xpurt.optimize(model, dtype=torch.bfloat16, sample_input=text, inplace=True)


def _quantized(kind: str, model: nn.Module, text: Tensor) -> Forward:
    return xpurt.quantize(model, kind, inplace=True)


def _compiled(model: nn.Module, text: Tensor) -> Forward:
    return torch.compile(model)


# What is done to a model, by the words of the rows' names.
FORMS: Mapping[str, Callable[[nn.Module, Tensor], Forward]] = {
    "bf16": _as_it_is,
    "optimized bf16": _optimized,
    "int8": partial(_quantized, "int8_weight_only"),
    "int4": partial(_quantized, "int4_weight_only"),
}


def _call(
    call: Call, form: Callable[[nn.Module, Tensor], Forward], kind: str
) -> Callable[[], object]:
    model, text = made(SHAPE, call)
    model, text = model.to(kind), text.to(kind)
    forward = form(model, text)

    def run() -> object:
        with torch.no_grad():
            return forward(text)

    return run


def _work(call: Call, form: str, kind: str, device: torch.device) -> Work:
    return Work(_call(call, FORMS[form], kind), elements=LARGE)


def _nothing() -> None:
    """A call on CPU tensors has ended when it returns."""


def _other(
    call: Call, form: Callable[[nn.Module, Tensor], Forward]
) -> tuple[Callable[[], object], Callable[[], object]]:
    return _call(call, form, "cpu"), _nothing


def _reading(
    call: Call, kind: str
) -> tuple[Callable[[], object], Callable[[], object]]:
    """A loop that reads as many bytes as the quantized linear layers have."""
    model, _ = made(SHAPE, call)
    quantized = xpurt.quantize(model, kind, inplace=True)
    size = sum(
        each.numel() * each.element_size()
        for name, each in quantized.named_buffers()
        if "weight" in name
    )
    memory = torch.ones(size // 8, dtype=torch.int64)
    return memory.sum, _nothing


def _others(call: Call, form: str) -> dict[str, Other]:
    others: dict[str, Other] = {
        "compiled": partial(_other, call, _compiled),
        "optimized bf16": partial(_other, call, _optimized),
    }
    gguf = {"bf16": "BF16", "int8": "Q8_0", "int4": "Q4_0"}.get(form)
    if gguf is not None:
        others["llama.cpp"] = partial(llama_cpp_call, SHAPE, call, gguf)
    if form in ("int8", "int4") and call.tokens == 1:
        others["reading"] = partial(_reading, call, f"{form}_weight_only")
    return others


# Ratios to other forms of the same work. Decoding: over llama.cpp's, and over a loop that
# reads the weights. Prompts: over the optimized model in bfloat16.
DECODING = {"llama.cpp": 0.9, "reading": 1.25}
READING = {"optimized bf16": 1.1}

CALLS: Mapping[str, Call] = {
    "a prompt of 128": Call(128),
    "a prompt of 2048": Call(2048),
    "a token after 128": Call(1, 128),
    "a token after 2048": Call(1, 2048),
    "4 tokens after 128": Call(1, 128, 4),
    "16 tokens after 128": Call(1, 128, 16),
}


def language_rows() -> Iterator[Row]:
    for name, call in CALLS.items():
        limits = DECODING if call.tokens == 1 else READING
        for form in FORMS:
            for kind in ("cpu", "xpu"):
                others = _others(call, form) if kind == "cpu" else {}
                yield Row(
                    f"{name}, {form}, {kind} tensors",
                    partial(_work, call, form, kind),
                    partial(_work, call, "bf16", "cpu"),
                    others=others,
                    others_at_most={
                        other: limit
                        for other, limit in limits.items()
                        if other in others and form in ("int8", "int4")
                    },
                    long=True,
                )


LANGUAGE = Suite(
    "language",
    "a language model of 308 million parameters, and eager PyTorch on CPU tensors in bf16",
    target=1.0,
    processor=True,
    beside="stock",
    only_by_name=True,
    rows=tuple(language_rows()),
)
