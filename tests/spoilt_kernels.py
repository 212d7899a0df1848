"""For processes of their own: a driver that refuses kernels, since their sources are
spoilt."""

SPOILT = """
import warnings
from xpurt import _C
from xpurt.kernels import registration
from xpurt.kernels.rows.table import ROWS

asked = []  # keys of kernels that may be spoilt

def spoil(*names, when=lambda: True):
    def make_source(key, traits):
        entry, source = registration.make_source(key, traits)
        row = ROWS[int(key.split(";")[0])]
        step = key.split(";")[2]
        if row.aten not in names and f"{row.aten}/{step}" not in names:
            return entry, source
        asked.append(key)
        return entry, source + "\\nthis is no C" if when() else source
    _C.set_source_callbacks(make_source, registration.fail)

def quietly(call):
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        return call(), [str(each.message) for each in said]
"""
