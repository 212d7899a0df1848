"""The demo from end to end: train on xpu, train on the CPU, compare, report."""

from pathlib import Path

import torch

import xpurt
from xpurt.demo.data import Digits, load_digits
from xpurt.demo.plot import save_plot
from xpurt.demo.report import epoch_line, shares, shares_table, speed_table
from xpurt.demo.training import Epoch, History, steps_per_epoch, train
from xpurt.kernels import devices_table
from xpurt.mapping.inventory import mapping_table
from xpurt.startup.extras import needs

EPOCHS = 10
GOAL = 0.97


def run_demo(
    mapping: str | None, epochs: int = EPOCHS, plot: Path | None = None
) -> int:
    """Prints the demo and returns the exit code: 0 if the network reached `GOAL`.

    `mapping` None keeps the one in force (`XPURT_MAPPING`, else AUTO).
    Raises `MissingExtra` for a package that is not installed, `MappingError` if the
    mapping finds no device.
    """
    if plot is not None:
        needs("matplotlib.figure", "the demo")  # raises before the work, not after it
    digits = load_digits()
    if mapping is not None:
        xpurt.set_xpu_mapping(mapping)
    print(f"mapping {xpurt.get_xpu_mapping()}\n{mapping_table()}\n")
    print(
        f"{len(digits.train_labels)} images to train on, {len(digits.test_labels)} "
        "to test with; the same work on xpu, then on stock CPU tensors\n"
    )
    on_xpu = _train_with_progress(torch.device("xpu"), digits, epochs)
    on_cpu = _train_with_progress(torch.device("cpu"), digits, epochs)
    report = xpurt.op_report()
    parts = shares(report.rows)
    print(f"\n{speed_table([on_xpu, on_cpu])}\n")
    print(f"where the ops on xpu ran\n{shares_table(parts)}")
    if report.devices:
        print(f"\nwhat each device did\n{devices_table(report.devices)}")
    if plot is not None:
        save_plot(plot, [on_xpu, on_cpu], parts, f"mapping {xpurt.get_xpu_mapping()}")
        print(f"\npicture: {plot}")
    return _verdict(on_xpu, epochs)


def _train_with_progress(device: torch.device, digits: Digits, epochs: int) -> History:
    tqdm = needs("tqdm", "the demo").tqdm
    with tqdm(
        total=epochs * steps_per_epoch(digits),
        unit="step",
        desc=str(device),
        leave=False,
    ) as bar:
        number = 0

        def show(epoch: Epoch) -> None:
            nonlocal number
            number += 1
            bar.write(f"{device}  {epoch_line(number, epochs, epoch)}")

        return train(device, digits, epochs, on_step=bar.update, on_epoch=show)


def _verdict(history: History, epochs: int) -> int:
    reached = history.epochs[-1].accuracy
    if reached >= GOAL:
        return 0
    # A run of a few epochs is a trial, and does not fail.
    if epochs < EPOCHS:
        print(f"\n{reached:.1%} after {epochs} epochs; {EPOCHS} reach {GOAL:.0%}")
        return 0
    print(f"\n{reached:.1%} of the test images are read right, {GOAL:.0%} was expected")
    return 1
