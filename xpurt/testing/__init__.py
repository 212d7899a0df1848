"""What users need to test code for devices that they do not have."""

from xpurt.testing.gpu import virtual_gpu

__all__ = ["virtual_gpu"]
