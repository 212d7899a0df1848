"""The tests in PyTorch's sources, loaded for a PyTorch of another version.

Names that this PyTorch does not have are replaced by classes that raise, so that a test
that uses one fails on every device.
"""

import importlib
import re
import sys
import unittest
from typing import Any

Outcome = tuple[str, str]  # "passed", "failed", ..., and a message


def load(name: str) -> Any:
    """Imports a module of the tests. A name that PyTorch lacks becomes a class there."""
    while True:
        try:
            return importlib.import_module(name)
        except ImportError as error:
            found = re.match(r"cannot import name '(\w+)' from '([\w.]+)'", str(error))
            if found is None:
                raise
            missing, module = found.groups()
            setattr(sys.modules[module], missing, _missing(missing))


def _missing(name: str) -> type:
    def refuse(self: object, *args: object, **kwargs: object) -> None:
        raise NotImplementedError(f"this PyTorch has no {name}")

    return type(name, (), {"__init__": refuse})


def outcome(result: unittest.TestResult) -> Outcome:
    for wrong in (result.errors, result.failures):
        if wrong:
            return "failed", wrong[0][1][-4000:]
    if result.skipped:
        return "skipped", result.skipped[0][1]
    if result.expectedFailures or result.unexpectedSuccesses:
        return "expected to fail", ""
    return "passed", ""
