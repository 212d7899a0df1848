"""Quantized models: layers in int8 and int4, for CPU and xpu tensors.

- `quantize`: replaces the linear and convolution layers of a model.
- `QuantizationReport`: which layers it replaced, and why it left others.
- `XPUQuantizer`: the quantizer for torchao's flow of exported programs (PT2E).
"""

from xpurt.quantization.exported import XPUQuantizer
from xpurt.quantization.model import quantize
from xpurt.quantization.report import LayerReport, QuantizationReport

__all__ = ["LayerReport", "QuantizationReport", "XPUQuantizer", "quantize"]
