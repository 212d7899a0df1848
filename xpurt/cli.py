"""The command line: `python -m xpurt`, or `xpurt`, with a subcommand."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one subcommand and return its exit code.

    0: all is well; 1: it is not, and the output says why; 2: bad usage.
    """
    options = _parser().parse_args(arguments)
    try:
        code: int = options.run(options)
    except BrokenPipeError:
        return 1  # `xpurt devices | head -1` is no mistake worth a traceback
    return code


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="xpurt", description="PyTorch's xpu device on SYCL"
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    devices = commands.add_parser("devices", help="list the physical devices")
    devices.set_defaults(run=_devices)

    doctor = commands.add_parser("doctor", help="look for what keeps xpu from working")
    doctor.set_defaults(run=_doctor)

    demo = commands.add_parser("demo", help="train a network on handwritten digits")
    demo.add_argument(
        "--mapping", help='as in XPURT_MAPPING: AUTO, CPU, "AUTO:GPU,CPU"'
    )
    demo.add_argument("--epochs", type=_positive, default=10, help="default: 10")
    demo.add_argument("--plot", type=Path, help="write a picture, as in out.png")
    demo.set_defaults(run=_demo)
    return parser


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{number} is not a positive number")
    return number


# Each command imports what it runs: `devices` needs no scikit-learn, and `doctor` has
# to work where the rest of xpurt does not.


def _devices(options: argparse.Namespace) -> int:
    from xpurt.errors import XpurtError
    from xpurt.inventory import devices_table

    try:
        print(devices_table())
    except XpurtError as error:
        return _failed(error)
    return 0


def _doctor(options: argparse.Namespace) -> int:
    from xpurt.diagnosis import diagnose

    findings = diagnose()
    for finding in findings:
        print(finding)
    return 0 if all(finding.ok for finding in findings) else 1


def _demo(options: argparse.Namespace) -> int:
    from xpurt.demo import MissingExtra, run_demo
    from xpurt.errors import XpurtError

    try:
        return run_demo(options.mapping, options.epochs, options.plot)
    except (MissingExtra, XpurtError) as error:
        return _failed(error)


def _failed(error: Exception) -> int:
    print(f"xpurt: {error}", file=sys.stderr)
    return 1
