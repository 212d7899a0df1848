"""Kernels of xpurt for ordinary CPU tensors, in the place of PyTorch's.

`setting` is the switch, and `table` the ops that are taken if the choice is by cost.
"""
