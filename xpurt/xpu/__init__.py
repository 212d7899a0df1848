"""What becomes ``torch.xpu``: PyTorch's own Python layer over xpurt's extension.

A PyTorch wheel without XPU holds the whole Python layer of ``torch.xpu``, but not the
names in ``torch._C`` that the layer uses. xpurt sets these names and imports the layer
once more. This room implements the names, and the functions that differ.
"""

from xpurt.xpu.install import install, uninstall

__all__ = ["install", "uninstall"]
