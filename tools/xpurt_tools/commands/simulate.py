"""`python -m xpurt simulate`."""

import argparse

from xpurt.command_line.arguments import failed, path, positive
from xpurt.startup.extras import MissingExtra
from xpurt.text.markdown_section import BadMarkers


def add_arguments(command: argparse.ArgumentParser) -> None:
    command.add_argument("--devices", nargs="+", type=positive, default=[], metavar="N")
    command.add_argument("--plot", type=path, help="draw one run, as in gantt.png")
    command.add_argument(
        "--markdown",
        type=path,
        metavar="FILE",
        help="rewrite the tables in a page, as in docs/measured/policies.md",
    )
    command.add_argument(
        "--ranks",
        action="store_true",
        help="training in parallel on 8 to 4,096 ranks instead",
    )
    command.add_argument(
        "--check",
        action="store_true",
        help="with --ranks: start 2, 4 and 8 ranks here, and compare",
    )


def run(options: argparse.Namespace) -> int:
    # Here: --help needs no traced workloads and no networks.
    from xpurt_tools.commands.policy_table import DEVICES, run_simulate

    devices = options.devices or DEVICES
    try:
        if options.ranks and options.check:
            from xpurt_tools.commands.rank_check import run_check_ranks

            return run_check_ranks(options.markdown)
        if options.ranks:
            from xpurt_tools.commands.rank_table import run_simulate_ranks

            return run_simulate_ranks(options.markdown)
        if max(devices) < 2:
            raise ValueError("policies differ on 2 devices and more; found --devices 1")
        return run_simulate(devices, options.markdown, options.plot)
    except (BadMarkers, MissingExtra, OSError, RuntimeError, ValueError) as error:
        return failed(error)
