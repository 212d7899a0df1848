"""`python -m xpurt demo`: trains a network on xpu to classify digits."""

from xpurt.demo.run import run_demo

__all__ = ["run_demo"]
