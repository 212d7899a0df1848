"""`python -m xpurt demo`: a network learns to read digits on xpu."""

from xpurt.demo.run import run_demo

__all__ = ["run_demo"]
