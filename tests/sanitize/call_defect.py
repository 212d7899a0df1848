"""Calls a function of a library: python call_defect.py LIBRARY FUNCTION."""

import ctypes
import sys

getattr(ctypes.CDLL(sys.argv[1]), sys.argv[2])()
