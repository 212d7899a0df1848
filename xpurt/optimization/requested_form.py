"""The form of optimized modules that a block asks for."""

import threading


class _OfThread(threading.local):
    form: bool | None = None  # whether it is the optimized one; None: any


_now = _OfThread()


def requested_form() -> bool | None:
    """The form that calls in this thread have to take: False as written, True optimized,
    None either."""
    return _now.form


class _InForm:
    """A context, and quicker than those of contextlib."""

    __slots__ = ("_before", "_form")

    def __init__(self, form: bool) -> None:
        self._form = form

    def __enter__(self) -> None:
        self._before, _now.form = _now.form, self._form

    def __exit__(self, *_: object) -> None:
        _now.form = self._before


def as_written() -> _InForm:
    return _InForm(False)


def optimized() -> _InForm:
    return _InForm(True)
