"""What a notebook shows of a report that is the last value of a cell."""


class ShownInNotebooks:
    """A class whose ``str()`` is for people: a notebook shows it, not the ``repr()``."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        from html import escape  # a program without a notebook needs none

        return f"<pre>{escape(str(self))}</pre>"
