"""`python -m xpurt prototype new`."""

import argparse
from pathlib import Path

from xpurt.command_line.arguments import failed, path
from xpurt.prototype import new_package


def add_arguments(command: argparse.ArgumentParser) -> None:
    command.add_argument("action", choices=("new",))
    command.add_argument("name", help='the device type, as "mydevice" or "ipu"')
    command.add_argument(
        "--folder", type=path, default=Path(), help="default: this one"
    )


def run(options: argparse.Namespace) -> int:
    try:
        files = new_package(options.name, options.folder)
    except (OSError, ValueError) as error:
        return failed(error)
    for file in files:
        print(file)
    print("\nNext: pytest, and the README beside it.")
    return 0
