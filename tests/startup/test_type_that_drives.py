"""Which GPUs a build of PyTorch drives as "cuda"."""

import pytest
import torch

from xpurt.startup import accelerator

NVIDIA, AMD, INTEL = 0x10DE, 0x1002, 0x8086


@pytest.mark.parametrize(
    ("cuda", "hip", "has_gpu", "vendor_id", "backend", "found"),
    [
        ("13.0", None, True, NVIDIA, "opencl", "cuda"),
        ("13.0", None, True, 0, "cuda", "cuda"),
        ("13.0", None, True, AMD, "opencl", ""),
        ("13.0", None, True, INTEL, "opencl", ""),
        ("13.0", None, False, NVIDIA, "opencl", ""),
        (None, "7.0", True, AMD, "opencl", "cuda"),
        (None, "7.0", True, 0, "hip", "cuda"),
        (None, "7.0", True, NVIDIA, "opencl", ""),
        (None, None, True, NVIDIA, "opencl", ""),
    ],
)
def test_a_gpu_is_driven_by_the_build_for_its_vendor(
    cuda: str | None,
    hip: str | None,
    has_gpu: bool,
    vendor_id: int,
    backend: str,
    found: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(torch.version, "cuda", cuda)
    monkeypatch.setattr(torch.version, "hip", hip)
    monkeypatch.setattr(accelerator, "has_gpu", lambda: has_gpu)
    assert accelerator.type_that_drives(vendor_id, backend) == found
