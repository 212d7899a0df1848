"""Loops of accelerate, transformers and timm on two ranks that torchrun starts."""

from pathlib import Path

import pytest
from torchrun import NETWORK, torchrun

ACCELERATE = """
from accelerate import Accelerator, FullyShardedDataParallelPlugin
from torch.utils.data import DataLoader, TensorDataset

options = {}
if strategy != "ddp":
    version = int(strategy.removeprefix("fsdp"))
    options = {"fsdp_plugin": FullyShardedDataParallelPlugin(fsdp_version=version)}
accelerator = Accelerator(**options)
assert accelerator.device.type == "xpu", accelerator.device
assert accelerator.num_processes == 2
model = network()
loader = DataLoader(TensorDataset(x, y), batch_size=8)
if strategy == "fsdp1":  # accelerate asks for an optimizer of the sharded parameters
    model, loader = accelerator.prepare(model, loader)
    optimizer = accelerator.prepare(sgd(model))
else:
    model, optimizer, loader = accelerator.prepare(model, sgd(model), loader)
found = []
for _ in range(4):
    for given, wanted in loader:
        assert given.device.type == "xpu", given.device
        optimizer.zero_grad()
        loss = mse_loss(model(given), wanted)
        accelerator.backward(loss)
        optimizer.step()
        found.append(accelerator.reduce(loss.detach(), "mean").cpu())
torch.testing.assert_close(torch.stack(found), alone()[1], rtol=1e-5, atol=1e-6)
if accelerator.is_main_process:
    print("the same")
accelerator.end_training()
"""
TRAINER = """
from transformers import Trainer, TrainingArguments


class Regression(nn.Module):
    def __init__(self):
        super().__init__()
        self.network = network()

    def forward(self, x=None, y=None):
        assert x.device.type == "xpu", x.device
        found = self.network(x)
        return {"loss": mse_loss(found, y), "logits": found}

options = {}
if strategy == "fsdp2":
    options = {"fsdp": "full_shard", "fsdp_config": {"version": 2}}
arguments = TrainingArguments(
    sys.argv[0] + ".out", per_device_train_batch_size=8, num_train_epochs=4,
    optim="sgd", optim_args="momentum=0.9", learning_rate=0.1,
    lr_scheduler_type="constant", max_grad_norm=0.0, logging_steps=1,
    save_strategy="no", report_to=[], disable_tqdm=True, **options,
)
trainer = Trainer(
    Regression(), arguments,
    train_dataset=[{"x": a, "y": b} for a, b in zip(x, y)],
    optimizer_cls_and_kwargs=(torch.optim.SGD, {"lr": 0.1, "momentum": 0.9}),
)
trainer.train()
found = [each["loss"] for each in trainer.state.log_history if "loss" in each]
torch.testing.assert_close(
    torch.tensor(found), alone()[1], rtol=0, atol=1e-4  # four digits are logged
)
if trainer.is_world_process_zero():
    print("the same")
"""
TIMM = """
from types import SimpleNamespace

import timm.utils

args = SimpleNamespace(device="xpu", dist_backend=None, dist_url=None)
device = timm.utils.init_distributed_device(args)
assert args.distributed
assert (device.type, args.world_size) == ("xpu", 2)
rank = args.rank
model = nn.parallel.DistributedDataParallel(network().to(device))
optimizer = sgd(model)
half = slice(8 * rank, 8 * rank + 8)
found = []
for _ in range(4):
    optimizer.zero_grad()
    loss = mse_loss(model(x[half].to(device)), y[half].to(device))
    loss.backward()
    optimizer.step()
    found.append(timm.utils.reduce_tensor(loss.detach(), args.world_size).cpu())
torch.testing.assert_close(torch.stack(found), alone()[1], rtol=1e-5, atol=1e-6)
if timm.utils.is_primary(args):
    print("the same")
"""
LOOPS = {"timm": TIMM, "accelerate": ACCELERATE, "transformers": TRAINER}


@pytest.mark.parametrize(
    ("package", "strategy"),
    [
        ("timm", "ddp"),
        ("accelerate", "ddp"),
        ("accelerate", "fsdp1"),
        ("accelerate", "fsdp2"),
        ("transformers", "ddp"),
        ("transformers", "fsdp2"),
    ],
)
def test_two_ranks_train_as_one_process(
    package: str, strategy: str, tmp_path: Path
) -> None:
    pytest.importorskip(package)
    script = tmp_path / "program.py"
    script.write_text(NETWORK + LOOPS[package])
    assert "the same" in torchrun(str(script), strategy)
