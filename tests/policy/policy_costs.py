"""The type of the fixture set_costs."""

from collections.abc import Callable

SetCosts = Callable[..., None]
