"""`python -m xpurt demo`: a network learns to read digits on xpu."""

from xpurt.demo.extras import MissingExtra
from xpurt.demo.run import run_demo

__all__ = ["MissingExtra", "run_demo"]
