"""Two threads that trace and step at once. A process has one lazy backend."""

from own_process import output

TRAINING = """
import threading
import torch
import xpurt.lazy
torch.set_num_threads(1)
xpurt.set_xpu_mapping("CPU")
xpurt.lazy.init(compile="never")

def train(factor, ends):
    x = torch.full((8, 8), factor, device="lazy")
    weight = torch.full((8, 8), 0.01, device="lazy", requires_grad=True)
    for _ in range(60):
        y = torch.tanh(x @ weight).clone().add_(1)
        part = y[:, 1:3].mul_(2)
        (y.sum() + part.sum()).backward()
        with torch.no_grad():
            weight -= 1e-3 * weight.grad
        weight.grad = None
        xpurt.lazy.step()
    ends[factor] = weight.tolist()

alone = {}
for factor in (1.0, 2.0):
    train(factor, alone)
for _ in range(6):
    both = {}
    threads = [threading.Thread(target=train, args=(each, both)) for each in (1.0, 2.0)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    print(both == alone)
"""


def test_threads_that_step_beside_each_other() -> None:
    assert output(TRAINING).split() == ["True"] * 6
