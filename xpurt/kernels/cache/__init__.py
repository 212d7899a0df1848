"""Files that processes share: binaries of built kernels, and the described rows.
Imports no other folder of kernels."""
