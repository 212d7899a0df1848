"""Memory that is seen from two sides, and where tensors and models are.

`xpurt.share`, `xpurt.where`, `xpurt.from_usm`, `xpurt.lazy_copies`, `xpurt.place`.
"""
