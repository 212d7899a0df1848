"""DDP's times of its passes, which it logs."""

from own_process import output

TRAINED = """
import os, warnings
import torch, xpurt
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
warnings.simplefilter("error")
dist.init_process_group("xccl", store=dist.HashStore(), rank=0, world_size=1)
model = DistributedDataParallel(torch.nn.Linear(64, 64).to("xpu"))
x = torch.ones(64, 64, device="xpu")
for _ in range(4):
    model(x).sum().backward()
with model.no_sync():
    model(x).sum().backward()
model(x)
data = model._get_ddp_logging_data()
for name in ("forward_compute_time", "backward_compute_time", "backward_comm_time"):
    print(0 < data["avg_" + name] < 60e9)
dist.destroy_process_group()
"""


def test_ddp_has_times_and_no_warning() -> None:
    assert output(TRAINED).split() == ["True"] * 3
