"""Kinds of rows: the forms in which an op can be declared, and the element types.

Imports nothing from the other folders of kernels. A new kind of kernel begins here.
"""
