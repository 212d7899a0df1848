"""Types that an op has on GPUs and lacks in PyTorch's CPU kernels, and the wider types
in which it is computed.

One line per op; see Note [Types that the CPU lacks] in ``csrc/native/wider_types.cpp``.
An op is here only if PyTorch lists the type for CUDA or XPU: in its database of ops,
or, if only a derivative calls the op, by the gradients that are listed there. Every
other op raises the same error on xpu as on the CPU.
"""

from dataclasses import dataclass

HALVES = ("float16", "bfloat16")
INTEGERS = ("uint8", "int8", "int16", "int32", "int64")

# Sums of bools are integers. Integers in a range (of histc) are exact in float64 up to
# 2**53, and PyTorch's integer kernels on GPUs count the same.
WIDE = {
    "float16": "float32",
    "bfloat16": "float32",
    "complex32": "complex64",
    "bool": "uint8",
    **dict.fromkeys(INTEGERS, "float64"),
}


@dataclass(frozen=True, slots=True)
class WiderTypes:
    """An op, and the types of its operands for which it is computed in a wider type.

    on_cpu: the CPU has kernels of these types. The wider type is used only on a device
    whose memory the host can't read, as the device has a kernel of it.
    powers_of_two: the op is a Fourier transform, which GPUs compute in these types only
    along dimensions of such sizes.
    """

    aten: str
    dtypes: tuple[str, ...]
    on_cpu: bool = False
    powers_of_two: bool = False

    def described(self) -> dict[str, object]:
        """The row in the form that C++ reads."""
        return {
            "name": f"aten::{self.aten}",
            "types": [(dtype, WIDE[dtype]) for dtype in self.dtypes],
            "on_cpu": self.on_cpu,
            "powers_of_two": self.powers_of_two,
        }


def _all(names: str, *dtypes: str, on_cpu: bool = False) -> tuple[WiderTypes, ...]:
    return tuple(WiderTypes(name, dtypes, on_cpu) for name in names.split())


ROWS: tuple[WiderTypes, ...] = (
    *_all("histc", *INTEGERS),
    *_all("avg_pool3d avg_pool3d_backward", *HALVES),
    *_all("_upsample_bilinear2d_aa _upsample_bilinear2d_aa_backward", *HALVES),
    *_all("_upsample_bicubic2d_aa _upsample_bicubic2d_aa_backward", *HALVES),
    *_all("multi_margin_loss multi_margin_loss_backward", *HALVES),
    *_all(
        "multilabel_margin_loss_forward multilabel_margin_loss_backward",
        *HALVES,
    ),
    *_all("rrelu_with_noise rrelu_with_noise_backward", "float16"),
    # With out= one of the types is that of the results.
    WiderTypes("_fft_c2c", ("complex32",), powers_of_two=True),
    WiderTypes("_fft_r2c", ("float16", "complex32"), powers_of_two=True),
    WiderTypes("_fft_c2r", ("float16", "complex32"), powers_of_two=True),
    WiderTypes("abs", ("bool",)),
    *_all("trace", "bool", "complex32"),
    *_all("acos acosh asin asinh atan atanh cos cosh sin sinh tan tanh", "complex32"),
    *_all("exp log sqrt rsqrt sigmoid angle logaddexp lerp div pow", "complex32"),
    *_all("sum prod nansum", "complex32"),
    # Ops that the derivatives of these call.
    *_all("sigmoid_backward tanh_backward cumprod flip", "complex32"),
    # Ops that every program with complex numbers calls.
    *_all(
        "add sub mul neg abs sgn conj_physical isnan eq ne where fill zero",
        "complex32",
        on_cpu=True,
    ),
)
