"""Mappings for programs of lazy tensors."""

import pytest

import xpurt


def with_gpu(mapping: str) -> str:
    """The mapping. The test is skipped if there is no GPU for it."""
    if mapping != "CPU" and not any(d.kind == "gpu" for d in xpurt.physical_devices()):
        pytest.skip("the virtual GPU is switched off")
    return mapping
