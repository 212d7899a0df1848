"""Files that processes share: binaries of built kernels. Imports nothing of kernels."""
