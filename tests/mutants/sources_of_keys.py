"""Reads a file with keys of kernels, and prints a hash of each one's source."""

import hashlib
from pathlib import Path

from xpurt.kernels.registration import make_source
from xpurt.kernels.sources.source import DeviceTraits

DEVICE = DeviceTraits(
    sub_group=16,
    has_wide_sub_groups=True,
    max_work_group=4096,
    local_memory=1 << 15,
    vector_width=8,
)


def tell(keys: str) -> None:
    for key in Path(keys).read_text().splitlines():
        print(hashlib.sha256(make_source(key, DEVICE)[1].encode()).hexdigest())
