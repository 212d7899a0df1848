"""Warnings about compiled programs: each text is given once per process."""

import functools
import warnings


@functools.cache
def warn_once(text: str) -> None:
    """`text`: a sentence without its period."""
    warnings.warn(f"{text}.", RuntimeWarning, stacklevel=2)
