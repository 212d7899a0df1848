"""Classes that programs take for those that they were made of."""

from typing import Any


def subclass(original: type, *bases: type, **members: Any) -> Any:
    """A class of the bases and the original, with the name and the text of the original."""
    as_original = {
        name: getattr(original, name)
        for name in ("__module__", "__qualname__", "__doc__")
    }
    return type(original.__name__, (*bases, original), {**as_original, **members})
