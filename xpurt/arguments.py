"""The TypeErrors of the public functions for arguments of a wrong type.

Each message gives what was requested, what was found, and a remedy, as all errors of
xpurt do.
"""

from collections.abc import Callable
from types import UnionType
from typing import Any

_LONGEST = 60  # characters of a value that are shown


def wrong_type(what: str, wanted: str, found: object, remedy: str) -> TypeError:
    """The error for an argument: `what` wants `wanted`."""
    return TypeError(f"{what} wants {wanted}; found {shown(found)}. {remedy}")


def check_type(
    what: str,
    found: object,
    kinds: type | UnionType,
    wanted: str,
    remedy: str,
) -> None:
    """Raises TypeError if `found` is not one of `kinds`. A bool is no number."""
    if not isinstance(found, kinds) or (isinstance(found, bool) and kinds is not bool):
        raise wrong_type(what, wanted, found, remedy)


def check_flag(what: str, found: object) -> None:
    """Raises TypeError unless `found` is True or False: "no" and 0.5 are truthy."""
    check_type(what, found, bool, "True or False", "Give one of them.")


def check_callable(what: str, found: Any) -> Callable[..., Any]:
    """Returns `found`. Raises TypeError if it can't be called."""
    if not callable(found):
        raise wrong_type(
            what,
            "a function",
            found,
            "Give one that makes the call, as in lambda: model(x).",
        )
    called: Callable[..., Any] = found
    return called


def shown(found: object) -> str:
    """Type and value of what was found, in one short line."""
    if found is None:
        return "None"
    text = " ".join(repr(found).split())
    if len(text) > _LONGEST:
        text = f"{text[:_LONGEST]}..."
    return f"{type(found).__name__} {text}"
