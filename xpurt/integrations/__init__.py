"""Adds xpu to packages that don't support it, when a program imports them."""

from xpurt.integrations.after_import import follow_imports

__all__ = ["follow_imports"]
