"""A model that is larger than the GPU, on CPU and GPU together.

The virtual GPU takes the place of a real one: 64 MiB for layers of 160 MiB.
"""

import time

import torch
from torch import nn

import xpurt
import xpurt.testing


def main() -> None:
    # Before the first use of a device. Remove this line on a machine with a real GPU.
    xpurt.testing.virtual_gpu(memory_bytes=64 << 20)
    xpurt.set_xpu_mapping("AUTO")

    torch.manual_seed(0)
    layers = nn.Sequential(*[nn.Linear(1024, 1024) for _ in range(40)])
    batch = torch.randn(4, 1024)
    wanted = layers(batch)
    model, inputs = layers.to("xpu"), batch.to("xpu")
    for call in range(6):
        begin = time.perf_counter()
        found = model(inputs).cpu()
        print(f"call {call}: {time.perf_counter() - begin:.3f} s")
    print("largest difference", (found - wanted).abs().max().item())
    held = [xpurt.where(layer.weight) for layer in model]
    on_gpu = sum(any("gpu" in device for device in devices) for devices in held)
    print(f"{on_gpu} of {len(held)} weights are on the GPU")
    for device in xpurt.op_report().devices:
        print(f"{device.device}: {device.ops} ops, {device.bytes_moved:,} bytes moved")


if __name__ == "__main__":
    main()
