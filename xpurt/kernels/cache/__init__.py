"""Files that processes share: binaries of built kernels. Imports no other folder of
kernels."""
