"""The command line: `python -m xpurt`, or `xpurt`, with a subcommand."""

import argparse
import shutil
import sys
from collections.abc import Collection, Sequence

from xpurt.command_line.arguments import failed, path, positive
from xpurt.errors import nearest
from xpurt.startup.extras import MissingExtra, tool

# Commands of the package xpurt_tools: modules of xpurt_tools.commands, with the functions
# `add_arguments` and `run`.
TOOLS = {
    "prototype": "write a package for a new device type of PyTorch, or list its kernels",
    "simulate": "compare scheduling policies on machines of 1 to 64 devices",
    "conformance": "run PyTorch's own database of ops on xpu and on the CPU",
    "bench": "time the same work on stock CPU tensors and on xpu",
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one subcommand and returns its exit code.

    0: success; 1: failure, and the output gives the reason; 2: bad usage.
    """
    given = list(sys.argv[1:] if arguments is None else arguments)
    try:
        parser, commands = _parser(next((x for x in given if x[:1] != "-"), ""))
    except MissingExtra as error:
        return failed(error)
    if not given:
        parser.print_help(sys.stderr)
        parser.exit(2)
    if not given[0].startswith("-") and given[0] not in commands:
        near = nearest(given[0], commands)
        hint = f'did you mean "{near}"?' if near else f"there are {', '.join(commands)}"
        parser.error(f'no command "{given[0]}"; {hint}')
    options = parser.parse_args(given)
    try:
        code: int = options.run(options)
    except BrokenPipeError:
        return 1  # `xpurt devices | head -1` needs no traceback
    return code


def _parser(given: str) -> tuple[argparse.ArgumentParser, Collection[str]]:
    """The parser, and the names of the commands. Those of TOOLS have arguments if they are
    `given`: the import of their modules takes time.

    Raises MissingExtra if the package of that command is not installed.
    """
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
    demo.add_argument("--epochs", type=positive, default=10, help="default: 10")
    demo.add_argument("--plot", type=path, help="write a picture, as in out.png")
    demo.set_defaults(run=_demo)

    cache = commands.add_parser("cache", help="built kernels that are kept on disk")
    cache.add_argument("--clear", action="store_true", help="remove them")
    cache.set_defaults(run=_cache)

    ops = commands.add_parser("ops", help="list the ops that have kernels of xpurt's")
    ops.add_argument(
        "--markdown", type=path, metavar="FILE", help="write the list as a page"
    )
    ops.set_defaults(run=_ops)

    calibrate = commands.add_parser(
        "calibrate",
        help="measure what ops cost on each device, in some ten seconds, and keep it",
    )
    calibrate.add_argument(
        "--show", action="store_true", help="measure nothing: print what is known"
    )
    calibrate.add_argument("--plot", type=path, help="draw it, as in out.png")
    calibrate.add_argument(
        "--html", type=path, metavar="FILE", help="write the report as a page"
    )
    calibrate.add_argument(
        "--force", action="store_true", help="keep what a busy machine gives, too"
    )
    calibrate.set_defaults(run=_calibrate)

    generate = commands.add_parser("generate", help="text of a language model")
    if given == "generate":
        from xpurt.command_line.generate import add_arguments

        add_arguments(generate)
    generate.set_defaults(run=_generate)

    for name, text in TOOLS.items():
        command = commands.add_parser(name, help=text)
        if name == given:
            module = tool(f"commands.{name}", f'the command "{name}"')
            module.add_arguments(command)
            command.set_defaults(run=module.run)
    return parser, commands.choices


# Each command imports what it needs: `devices` needs no scikit-learn, and `doctor` has
# to work if the rest of xpurt does not.


def _devices(options: argparse.Namespace) -> int:
    from xpurt.errors import XpurtError
    from xpurt.mapping.inventory import devices_table

    try:
        print(devices_table())
    except XpurtError as error:
        return failed(error)
    return 0


def _doctor(options: argparse.Namespace) -> int:
    from xpurt.command_line.diagnosis import diagnose

    findings = diagnose()
    for finding in findings:
        print(finding)
    return 0 if all(finding.ok for finding in findings) else 1


def _demo(options: argparse.Namespace) -> int:
    from xpurt.demo import run_demo
    from xpurt.errors import XpurtError

    try:
        return run_demo(options.mapping, options.epochs, options.plot)
    except (MissingExtra, XpurtError) as error:
        return failed(error)


def _cache(options: argparse.Namespace) -> int:
    from xpurt.errors import XpurtError
    from xpurt.kernels import kernel_cache

    try:
        cache = kernel_cache()
        if options.clear:
            print(f"removed {cache.clear():,} kernels from {cache.folder}")
            return 0
        files = cache.files()
        print(
            f"{cache.folder}: {len(files):,} kernels, {cache.size_bytes():,} of "
            f"{cache.limit_bytes:,} bytes"
        )
    except (OSError, XpurtError) as error:
        return failed(error)
    return 0


def _calibrate(options: argparse.Namespace) -> int:
    from xpurt.calibration import run_calibrate
    from xpurt.errors import XpurtError

    try:
        return run_calibrate(
            show=options.show,
            plot=options.plot,
            html=options.html,
            force=options.force,
        )
    except (MissingExtra, OSError, ValueError, XpurtError) as error:
        return failed(error)


def _generate(options: argparse.Namespace) -> int:
    from xpurt.command_line.generate import run_generate
    from xpurt.errors import XpurtError

    try:
        return run_generate(options)
    except (MissingExtra, OSError, ValueError, XpurtError) as error:
        return failed(error)


def _ops(options: argparse.Namespace) -> int:
    from xpurt.command_line.op_table import op_page, op_table

    if options.markdown is None:
        print(op_table(shutil.get_terminal_size().columns))
        return 0
    try:
        options.markdown.write_text(op_page())
    except OSError as error:
        return failed(error)
    return 0
