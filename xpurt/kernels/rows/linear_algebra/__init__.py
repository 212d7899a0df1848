"""Rows of factorizations of matrices, and of what is computed from them."""
