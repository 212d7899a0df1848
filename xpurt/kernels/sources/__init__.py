"""The making of OpenCL C: from a row and a kernel key to the source of a kernel.

`templates` holds what the sources are filled into. Imports the kinds and the rows.
"""
