"""Rows that move channels, by views and one copy."""

from xpurt.kernels.decomposed import Decomposed
from xpurt.kernels.row import ARITHMETIC

ROWS = (
    Decomposed("pixel_shuffle", kind=ARITHMETIC),
    Decomposed("pixel_unshuffle", kind=ARITHMETIC),
    Decomposed("channel_shuffle", kind=ARITHMETIC),
)
