"""Several processes train one network: torchrun --nproc-per-node 2 examples/train_ddp.py"""

import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group()
torch.xpu.set_device(int(os.environ["LOCAL_RANK"]))

torch.manual_seed(dist.get_rank())  # each rank has data of its own
x = torch.randn(256, 16, device="xpu")
y = x.sum(1, keepdim=True).sin()

net = torch.nn.Sequential(
    torch.nn.Linear(16, 64), torch.nn.Tanh(), torch.nn.Linear(64, 1)
)
model = DistributedDataParallel(net.to("xpu"))
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)

for step in range(50):
    optimizer.zero_grad()
    loss = torch.nn.functional.mse_loss(model(x), y)
    loss.backward()  # gradients are averaged over the ranks meanwhile
    optimizer.step()
    if step % 10 == 9:
        dist.all_reduce(loss := loss.detach(), dist.ReduceOp.AVG)
        if dist.get_rank() == 0:
            print(f"step {step + 1}: loss {loss.item():.3f}")

dist.destroy_process_group()
