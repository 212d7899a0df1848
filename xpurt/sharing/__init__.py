"""Memory shared by two sides, and the devices of tensors and models.

`xpurt.share`, `xpurt.where`, `xpurt.from_usm`, `xpurt.lazy_copies`, `xpurt.place`.
"""
