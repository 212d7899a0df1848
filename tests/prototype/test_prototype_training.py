"""Networks on a prototype device: trained, checkpointed, and on two ranks."""

from pathlib import Path

import pytest
from prototype_programs import START, environment_of, few_kinds, run
from torchrun import torchrun

TRAINING = """
def losses(device, make):
    torch.manual_seed(0)
    net, x, y = make()
    net, x, y = net.to(device), x.to(device), y.to(device)
    steps = torch.optim.AdamW(net.parameters(), 0.01)
    found = []
    for _ in range(5):
        steps.zero_grad()
        out = net(x)
        out = out[0][:, -1] if isinstance(out, tuple) else out
        loss = nn.functional.cross_entropy(out, y)
        loss.backward()
        steps.step()
        found.append(loss.detach())
    return torch.stack(found).cpu()

def cnn():
    net = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2),
                        nn.ConvTranspose2d(8, 4, 2), nn.Flatten(), nn.LazyLinear(5))
    x = torch.randn(4, 3, 12, 12)
    net(x)
    return net, x, torch.randint(5, (4,))

def lstm():
    return nn.LSTM(6, 5, num_layers=2, batch_first=True), torch.randn(4, 7, 6), torch.randint(5, (4,))

def attention():
    layer = nn.TransformerEncoderLayer(16, 2, 32, dropout=0.0, batch_first=True)
    net = nn.Sequential(layer, nn.Flatten(), nn.Linear(16 * 6, 5))
    return net, torch.randn(4, 6, 16), torch.randint(5, (4,))

class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.LayerNorm(16), nn.LayerNorm(16)
        self.qkv, self.out = nn.Linear(16, 48), nn.Linear(16, 16)
        self.mlp = nn.Sequential(nn.Linear(16, 64), nn.GELU(), nn.Linear(64, 16))

    def forward(self, x):
        heads = [each.unflatten(-1, (2, 8)).transpose(1, 2)
                 for each in self.qkv(self.first(x)).chunk(3, -1)]
        mixed = nn.functional.scaled_dot_product_attention(*heads, is_causal=True)
        x = x + self.out(mixed.transpose(1, 2).flatten(2))
        return x + self.mlp(self.second(x))

class Gpt(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens, self.places = nn.Embedding(20, 16), nn.Embedding(7, 16)
        self.blocks = nn.Sequential(Block(), Block())
        self.end, self.head = nn.LayerNorm(16), nn.Linear(16, 20, bias=False)
        self.head.weight = self.tokens.weight

    def forward(self, x):
        places = torch.arange(x.shape[1], device=x.device)
        x = self.blocks(self.tokens(x) + self.places(places))
        return self.head(self.end(x)).flatten(0, 1)

def gpt():
    text = torch.randint(20, (4, 8))
    return Gpt(), text[:, :-1], text[:, 1:].flatten()

for make in (cnn, lstm, attention, gpt):
    found = losses(name, make)
    torch.testing.assert_close(found, losses("cpu", make), rtol=1e-4, atol=1e-5)
    assert found[-1] < found[0], (make, found)
print("the same")
"""


@pytest.mark.one_in(4)
@few_kinds
def test_networks_train_to_the_losses_of_the_cpu(name: str, memory: str) -> None:
    assert "the same" in run(TRAINING, name, memory)


CHECKPOINT = """
from torch.utils.checkpoint import checkpoint
net = nn.Sequential(nn.Linear(8, 8), nn.Dropout(0.5), nn.ReLU()).to(name)
x = torch.randn(4, 8, device=name)
grads = []
for run in (lambda x: net(x), lambda x: checkpoint(net, x, use_reentrant=False)):
    made.runtime.manual_seed_all(3)
    net.zero_grad()
    run(x).sum().backward()
    grads.append([each.grad.clone() for each in net.parameters()])
assert all(torch.equal(one, other) for one, other in zip(*grads))
print("bit-equal")
"""


@pytest.mark.one_in(4)
@few_kinds
def test_a_checkpoint_with_dropout_is_bit_equal(name: str, memory: str) -> None:
    assert "bit-equal" in run(CHECKPOINT, name, memory)


NAMES = ["ipu", "hpu", "mydevice"]

KEPT = """
from torch.utils.checkpoint import checkpoint
scale = [1.0]  # a state of the vendor's device, which each computation changes
made.runtime.keep_for_recomputation(
    lambda index: scale[0], lambda index, value: scale.__setitem__(0, value))
net = nn.Linear(8, 8).to(name)
x = torch.randn(4, 8, device=name, requires_grad=True)

def scaled(x):
    scale[0] *= 2
    return (net(x) * scale[0]).tanh()

grads = []
for run in (scaled, lambda x: checkpoint(scaled, x, use_reentrant=False),
            lambda x: checkpoint(scaled, x, use_reentrant=True)):
    scale[0] = 1.0
    x.grad = None
    first = run(x)
    (first + scaled(first)).sum().backward()
    assert scale == [4.0], scale  # what was in force before the backward
    grads.append(x.grad.clone())
assert all(torch.equal(grads[0], each) for each in grads[1:])
print("kept")
"""


@pytest.mark.parametrize(
    "name",
    ["mtia", *(pytest.param(each, marks=pytest.mark.slow) for each in NAMES)],
)
def test_other_states_are_kept_for_recomputation(name: str) -> None:
    assert "kept" in run(KEPT, name, "host")


PINNED = """
from torch.utils.data import DataLoader, TensorDataset
batches = DataLoader(TensorDataset(torch.arange(6.0)), batch_size=2, pin_memory=True)
for (batch,) in batches:
    assert batch.is_pinned()
    assert batch.to(name, non_blocking=True).device.type == name
assert not torch.ones(3).is_pinned()
x = torch.ones(3).pin_memory()
assert x[1:].is_pinned()
print("pinned")
"""


@pytest.mark.parametrize(
    ("name", "memory"),
    [
        ("mtia", "cpu"),
        ("ipu", "host"),
        pytest.param("hpu", "host", marks=pytest.mark.slow),
        pytest.param("mtia", "host", marks=pytest.mark.slow),
        pytest.param("mydevice", "host", marks=pytest.mark.slow),
    ],
)
def test_a_data_loader_pins(name: str, memory: str) -> None:
    assert "pinned" in run(PINNED, name, memory)


TWO_RANKS = """
import os, sys
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
dist.init_process_group("gloo")
torch.manual_seed(0)
net = nn.Linear(4, 3).to(name)
alone = copy.deepcopy(net)
ddp = DistributedDataParallel(net)
x = torch.randn(2, 5, 4).to(name)
ddp(x[dist.get_rank()]).square().mean().backward()
((alone(x[0]).square().mean() + alone(x[1]).square().mean()) / 2).backward()
torch.testing.assert_close(net.weight.grad.cpu(), alone.weight.grad.cpu())
# One write: two ranks print to the same pipe.
sys.stdout.write(f"rank {dist.get_rank()} is right\\n")
dist.destroy_process_group()
"""


@pytest.mark.rest
@pytest.mark.parametrize(
    ("name", "memory"),
    [
        ("mydevice", "gpu"),
        pytest.param("mtia", "host", marks=pytest.mark.slow),
        pytest.param("ipu", "cpu", marks=pytest.mark.slow),
        pytest.param("hpu", "host", marks=pytest.mark.slow),
        pytest.param("ipu", "host", marks=pytest.mark.slow),
        pytest.param("mydevice", "host", marks=pytest.mark.slow),
    ],
)
def test_two_ranks_of_ddp(name: str, memory: str, tmp_path: Path) -> None:
    program = tmp_path / "ranks.py"
    program.write_text(START.format(name=name, memory=memory, devices=1) + TWO_RANKS)
    found = torchrun(str(program), **environment_of(memory))
    assert "rank 0 is right" in found
    assert "rank 1 is right" in found
