"""Optimizers with capturable=True on lazy tensors and on a prototype device, and with
fused=True on the latter."""

from own_process import output

STEPS = """
import torch
import xpurt, xpurt.lazy
xpurt.lazy.init(compile="never")
xpurt.prototype_device("ipu")
import torch.distributed.optim  # TorchScript compiles optimizers there
NAMES = "Adadelta Adam AdamW Adamax ASGD NAdam RAdam RMSprop Rprop".split()

def stepped(name, device, **options):
    x = torch.linspace(-1, 1, 5, dtype=torch.float64).to(device).requires_grad_()
    optimizer = getattr(torch.optim, name)([x], lr=0.1, **options)
    for _ in range(8):
        optimizer.zero_grad()
        (x.cos() * x).sum().backward()
        optimizer.step()
    return x.detach().cpu(), optimizer.state[x]["step"].device.type

for name in NAMES:
    # The number of steps is a float32. 1 - 0.999 ** steps is wrong by 2 ** -24, of 0.001, if
    # it is rounded otherwise: 8 steps of 0.1 are by 5e-5.
    bounds = {"lazy": 5e-5, "ipu": 1e-12}
    for foreach in (False, True):
        want, _ = stepped(name, "xpu", capturable=True, foreach=foreach)
        for device in ("lazy", "ipu"):
            found, place = stepped(name, device, capturable=True, foreach=foreach)
            torch.testing.assert_close(found, want, rtol=0, atol=bounds[device])
            assert place == device, (name, place)
    if name in ("Adam", "AdamW"):
        want, _ = stepped(name, "cpu", fused=True)
        found, _ = stepped(name, "ipu", fused=True)
        torch.testing.assert_close(found, want, rtol=0, atol=1e-12)
print("the same")
"""


def test_steps_are_those_of_xpu_and_the_cpu() -> None:
    assert output(STEPS) == "the same"
