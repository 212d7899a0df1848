"""Real reports, as cheap as they can be made: one page of each kind per module."""

import contextlib
import io
import os
from pathlib import Path

import pytest
import torch
from bench_command.made_up import LIMITS

import xpurt
from xpurt.command_line import cli
from xpurt_tools.bench import Request, run_bench
from xpurt_tools.bench.row import Row, Suite, Unavailable, Work, on
from xpurt_tools.bench.timing import Budget
from xpurt_tools.conformance import Settings, run_conformance

MADE_UP_OPS = Path(__file__).parents[1] / "conformance"


def lack(device: torch.device) -> Work:
    raise Unavailable("no <such> thing & no other")


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The pages of the three commands, by the names of the commands."""
    folder = tmp_path_factory.mktemp("reports")
    files = {
        name: folder / f"{name}.html" for name in ("conformance", "bench", "calibrate")
    }
    with (
        contextlib.redirect_stdout(io.StringIO()),
        pytest.MonkeyPatch.context() as here,
    ):
        _run_conformance(here, files["conformance"])
        _run_bench(files["bench"])
        shown = cli.main(["calibrate", "--show", "--html", str(files["calibrate"])])
    assert shown == 0
    return files


def _run_conformance(here: pytest.MonkeyPatch, html: Path) -> None:
    path = os.environ.get("PYTHONPATH", "")
    here.setenv("PYTHONPATH", os.pathsep.join(filter(None, [str(MADE_UP_OPS), path])))
    here.syspath_prepend(MADE_UP_OPS)
    settings = Settings(
        database="fake_database:entries",
        ops=("right", "wrong_by_one"),
        timeout_s=120,
    )
    assert run_conformance([settings], html_path=html) == 1


def _run_bench(html: Path) -> None:
    suite = Suite(
        "tiny",
        "a row, and one that fails",
        target=1.0,
        rows=(on("add", torch.add, (8,), (8,)), Row("lacking", lack)),
    )
    request = Request(mapping=xpurt.get_xpu_mapping(), html=html)
    assert run_bench(request, (suite,), Budget(10, 2, 2), LIMITS, lambda: 1.0) == 0
