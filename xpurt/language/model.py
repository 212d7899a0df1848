"""A model of transformers, made from a GGUF file."""

import os
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from xpurt.arguments import check_callable, check_type, wrong_type
from xpurt.language.architectures import architecture_of, scale_rotary_frequencies
from xpurt.language.configuration import configuration_of
from xpurt.language.file import read
from xpurt.language.weights import Weights
from xpurt.sharing.share import share
from xpurt.startup.extras import needs

_TYPES = (torch.float32, torch.bfloat16, torch.float16)


def load_gguf(
    path: str | os.PathLike[str],
    dtype: torch.dtype = torch.bfloat16,
    device: torch.device | str | None = None,
    *,
    progress: Callable[[int, int], None] | None = None,
) -> Any:
    """The language model of a GGUF file, as a model of transformers for inference.

    Linear layers and embeddings keep the blocks of the file, which is mapped into memory:
    they are `torch.ops.xpurt.block_linear` and `block_values`. Their bytes are not
    copied, but for the queries and keys of Llama, whose rows are in another order in the
    file. Matrices in floating point and norms are converted to `dtype` where they have
    another type. The file must not change while the model lives.

    path: of the file, with tensors in Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, Q4_K, Q5_K, Q6_K,
        F16, BF16 or F32, of an architecture in `xpurt.language.architectures`.
    dtype: of activations: float32, bfloat16 or float16.
    device: "xpu" for a model there. Where device and host can read each other's memory
        it has the mapped bytes, as by `xpurt.share`; else they are copied. By default the
        model is on the CPU, from where ``.to("xpu")`` copies it.
    progress: called with the number of modules that are loaded, and of all modules.

    Raises TypeError for other arguments, OSError if the file can't be read, ValueError
    for a file that isn't a whole GGUF file or has tensors or an architecture that are not
    among these, and ModuleNotFoundError without the extra `language`.
    """
    check_type(
        "load_gguf(dtype=)",
        dtype,
        torch.dtype,
        "float32, bfloat16 or float16",
        "Give torch.bfloat16.",
    )
    if dtype not in _TYPES:
        raise ValueError(
            f"load_gguf(dtype=) wants float32, bfloat16 or float16; found {dtype}. Give "
            "torch.bfloat16."
        )
    target = _target(device)
    if progress is not None:
        check_callable("load_gguf(progress=)", progress)
    file = read(path)
    architecture = architecture_of(file)
    transformers = needs("transformers", "load_gguf()", extra="language")
    config = configuration_of(file)
    with torch.device("meta"):
        model = transformers.AutoModelForCausalLM.from_config(config, dtype=dtype)
    weights = Weights(file, architecture, model, dtype)
    modules = list(model.named_modules())
    for number, (name, module) in enumerate(modules, 1):
        weights.fill(name, module)
        if progress is not None:
            progress(number, len(modules))
    _make_buffers(model)
    factors = weights.rotary_factors()
    if factors is not None:
        scale_rotary_frequencies(model, factors)
    weights.check_all_used()
    model.requires_grad_(False).eval()
    return model if target is None else _on_device(model, target)


def _target(device: object) -> torch.device | None:
    if device is None or isinstance(device, torch.device):
        return device
    wanted, remedy = "a device", 'Give "xpu", "cpu" or nothing.'
    if not isinstance(device, str):
        raise wrong_type("load_gguf(device=)", wanted, device, remedy)
    try:
        return torch.device(device)
    except RuntimeError:
        raise ValueError(
            f"load_gguf(device=) wants {wanted}; found {device!r}. {remedy}"
        ) from None


def _make_buffers(model: Any) -> None:
    """The buffers that transformers computes, such as rotary frequencies."""
    for module in list(model.modules()):
        on_meta = {
            n: b for n, b in module._buffers.items() if b is not None and b.is_meta
        }
        for name, buffer in on_meta.items():
            module._buffers[name] = torch.empty_like(buffer, device="cpu")
        if on_meta:
            model._init_weights(module)


def _on_device(model: nn.Module, device: torch.device) -> nn.Module:
    if device.type != "xpu":
        return model.to(device)
    try:
        return share(model, device)
    except RuntimeError:  # the device can't read the host's memory
        return model.to(device)
