"""What packages that know no xpu are told of it, when a program imports them."""

from xpurt.integrations.after_import import follow_imports

__all__ = ["follow_imports"]
