"""What becomes ``torch.xpu``: PyTorch's own Python layer over xpurt's extension.

A PyTorch wheel without XPU holds the whole Python layer of ``torch.xpu``, cut off from
the names in ``torch._C`` that it is written over. xpurt sets these names and imports
the layer once more. This room holds what stands behind the names, and the functions
that differ.
"""

from xpurt.xpu.install import install, uninstall

__all__ = ["install", "uninstall"]
