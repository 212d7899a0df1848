"""The packages that only the demo wants, imported when they are needed."""

import importlib
from types import ModuleType


class MissingExtra(Exception):
    """A package of the extra `demo` is not installed; the text is the way out."""


def needs(module: str, package: str) -> ModuleType:
    """Import `module`, or raise `MissingExtra` that names `package` and the extra."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as missing:
        if missing.name is None or missing.name.split(".")[0] != module.split(".")[0]:
            raise  # the package is there, and something inside it is broken
        raise MissingExtra(
            f"the demo wants {package}, which is not installed: "
            'pip install "xpurt[demo]"'
        ) from None
