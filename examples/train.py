"""Trains a small network on xpu: ordinary PyTorch, with another device name."""

import torch
from torch import nn

import xpurt


def spirals(count: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Points on two intertwined spirals, and the number of the spiral of each point."""
    along = torch.linspace(0.5, 3, count)
    which = torch.arange(count) % 2
    angle = 2 * along + torch.pi * which
    points = torch.stack((angle.cos(), angle.sin()), 1) * along[:, None]
    return points + 0.05 * torch.randn_like(points), which


def main() -> None:
    torch.manual_seed(0)
    points, which = (each.to("xpu") for each in spirals(1024))
    model = nn.Sequential(
        nn.Linear(2, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 2)
    ).to("xpu")
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)

    for step in range(201):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(points), which)
        loss.backward()
        optimizer.step()
        if step % 50 == 0:
            print(f"step {step:3d}  loss {loss.item():.4f}")

    right = (model(points).argmax(1) == which).float().mean().item()
    print(f"accuracy {right:.1%} on {torch.xpu.get_device_name()}")
    print(f"{torch.xpu.max_memory_allocated():,} bytes at the most")
    print("tiers", sorted({row.tier for row in xpurt.op_report()}))


if __name__ == "__main__":
    main()
