"""The type of the fixture `spin`."""

from collections.abc import Callable

Spin = Callable[..., None]
