"""Makes OpenCL C: from a row and a kernel key to the source of a kernel.

`templates` holds the texts that values are filled into. Imports the kinds and the rows.
"""
