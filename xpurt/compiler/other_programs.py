"""Options that ask Inductor for another program than Python that launches kernels."""

from typing import Final

from torch._inductor import config

# What an option makes, and what there is but to leave it out.
_OPTIONS: Final = {
    "cpp_wrapper": (
        "a C++ program for the host",
        ", or compile it where the host reads the memory of xpu: under the mapping "
        '"CPU" and the kernel policy "auto"',
    ),
    "fx_wrapper": ("a graph of Triton's kernels", ""),
}


def is_wanted() -> bool:
    return any(getattr(config, option) for option in _OPTIONS)


def refuse() -> None:
    """Raises RuntimeError if one of the options is set: a graph becomes kernels."""
    for option, (made, or_else) in _OPTIONS.items():
        if getattr(config, option):
            raise RuntimeError(
                f"{option} makes {made}, and this graph becomes kernels of OpenCL C. "
                f"Leave {option} out{or_else}."
            )
