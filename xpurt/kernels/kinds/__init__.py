"""Kinds of rows: what an op can be declared as, and the element types it is declared in.

Imports nothing of the other folders of kernels. A new kind of kernel begins here.
"""
