"""Warnings about compiled programs: each text is given once per process."""

import functools
import warnings


@functools.cache
def warn_once(text: str) -> None:
    """`text`: a sentence; its period is added if it has none, as the texts of most
    errors."""
    warnings.warn(f"{text.removesuffix('.')}.", RuntimeWarning, stacklevel=2)
