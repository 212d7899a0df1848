"""Language models from GGUF files, whose weights stay in the file's blocks.

- `load_gguf`: the model of transformers, for CPU and xpu tensors.
"""

from xpurt.language.model import load_gguf

__all__ = ["load_gguf"]
