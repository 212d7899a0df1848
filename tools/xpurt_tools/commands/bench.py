"""`python -m xpurt bench`."""

import argparse

from xpurt.command_line.arguments import failed, path
from xpurt.errors import XpurtError
from xpurt.startup.extras import MissingExtra


def add_arguments(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--suite",
        action="extend",
        nargs="+",
        default=[],
        metavar="S",
        help="as in dispatch or gemm, or auto alone; default: all but that",
    )
    command.add_argument(
        "--rows", default="*", metavar="PATTERN", help='rows by name, as in "add*"'
    )
    command.add_argument("--mapping", default="CPU", metavar="M", help="default: CPU")
    command.add_argument(
        "--quick", action="store_true", help="few rounds, and no row that takes long"
    )
    command.add_argument("--json", type=path, metavar="FILE", help="write all numbers")
    command.add_argument(
        "--html", type=path, metavar="FILE", help="write the report as a page"
    )
    command.add_argument("--plot", type=path, metavar="FILE", help="write a picture")
    command.add_argument(
        "--markdown",
        type=path,
        metavar="FILE",
        help="rewrite the tables in a page, as in docs/measured/performance.md",
    )


def run(options: argparse.Namespace) -> int:
    from xpurt_tools.bench import AUTO, BadRequest, Request, run_auto, run_bench

    request = Request(
        suites=tuple(options.suite),
        rows=options.rows,
        mapping=options.mapping,
        quick=options.quick,
        json=options.json,
        html=options.html,
        plot=options.plot,
        markdown=options.markdown,
    )
    try:
        # This suite sets the mappings in its own processes.
        return run_auto(request) if options.suite == [AUTO] else run_bench(request)
    except (BadRequest, MissingExtra, XpurtError) as error:
        return failed(error)
