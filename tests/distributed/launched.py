"""A program as users write it, for torchrun: it names neither backend nor mapping."""

import json
import os
from pathlib import Path

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh


def main() -> None:
    rank = int(os.environ["LOCAL_RANK"])
    first = torch.ones(2, device="xpu").device.index
    torch.xpu.set_device(rank)
    mesh = init_device_mesh("xpu", (2,))
    given = torch.full((2,), rank + 1.0, device="xpu")
    dist.all_reduce(given, group=mesh.get_group())
    found = {
        "rank": rank,
        "first": first,
        "devices": torch.xpu.device_count(),
        "device": str(given.device),
        "sum": given.tolist(),
        "processors": sorted(os.sched_getaffinity(0)),
        "threads": torch.get_num_threads(),
        "units": torch.xpu.get_device_properties(rank).max_compute_units,
        "backend": dist.get_backend_config(),
    }
    dist.destroy_process_group()
    Path(os.environ["RESULT"] + str(rank)).write_text(json.dumps(found))


if __name__ == "__main__":
    main()
