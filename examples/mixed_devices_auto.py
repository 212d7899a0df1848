"""Mixed devices under AUTO: one ordinal, and devices for parts of a model.

The virtual GPU takes the place of a real one. It shows that the program is correct, not
how fast it would be.
"""

import torch
from torch import nn

import xpurt
import xpurt.testing


def main() -> None:
    # Before the first use of a device. Remove this line on a machine with a real GPU.
    xpurt.testing.virtual_gpu()
    xpurt.set_xpu_mapping("AUTO")
    print("devices:", ", ".join(d.filter_string for d in xpurt.physical_devices()))

    torch.manual_seed(0)
    model = nn.Sequential()
    model.add_module("encoder", nn.Sequential(nn.Linear(256, 512), nn.GELU()))
    model.add_module("head", nn.Linear(512, 10))
    # Ops of the encoder prefer the GPU; xpurt moves the data.
    placed = xpurt.place(model, {"": "CPU", "encoder": "GPU"})
    batch = torch.randn(64, 256, device="xpu")

    encoded = model.encoder(batch)
    print("encoded on", ", ".join(xpurt.where(encoded)))
    xpurt.explain(model, batch)  # prints a row per op: where it ran, and why

    # For ops outside of modules:
    with xpurt.prefer("GPU"):
        scaled = batch * 2
    print("scaled on", ", ".join(xpurt.where(scaled)))

    # Without a preference AUTO decides by the predicted finish on each device.
    placed.remove()
    loss = model(batch).square().mean()
    loss.backward()
    print("loss", loss.item())
    for device in xpurt.op_report().devices:
        print(f"{device.device}: {device.ops} ops, {device.bytes_moved:,} bytes moved")


if __name__ == "__main__":
    main()
