"""Quantization of exported programs by torchao (PT2E)."""

import importlib
from typing import Any

from xpurt.startup.extras import MissingExtra

_QUANTIZER = "torchao.quantization.pt2e.quantizer.x86_inductor_quantizer"


def XPUQuantizer(*, dynamic: bool = False) -> Any:
    """The quantizer for torchao's `prepare_pt2e`, for programs on xpu and on the CPU.

    dynamic: activations have a scale of each call; else they have one from calibration.

    It is torchao's `X86InductorQuantizer` with the default configuration: int8 weights
    per channel, activations of 8 bits without a sign. The converted program consists of
    ops that PyTorch defines on every device, and runs on xpu, eager and compiled.

    Raises MissingExtra if torchao is not installed.
    """
    try:
        x86 = importlib.import_module(_QUANTIZER)
    except ModuleNotFoundError as missing:
        if (missing.name or "").partition(".")[0] != "torchao":
            raise
        raise MissingExtra("XPUQuantizer", "torchao", "quantization") from None
    quantizer = x86.X86InductorQuantizer()
    configuration = x86.get_default_x86_inductor_quantization_config(is_dynamic=dynamic)
    quantizer.set_global(configuration)
    return quantizer
