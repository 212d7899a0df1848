"""`python -m xpurt generate`, without a model: tests/programs has it with one."""

import sys

import pytest
import torch

from xpurt.command_line import cli
from xpurt.command_line.generate import Stopwatch, where
from xpurt.kernels import OpReport
from xpurt.kernels.report import OpRow


def test_a_missing_package_is_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "transformers", None)
    assert cli.main(["generate", "model.gguf", "--prompt", "Hello"]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("xpurt: generate wants transformers")
    assert line.endswith('pip install "xpurt[language]"')


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["m.gguf", "--tokens", "0"],
        ["m.gguf", "--dtype", "int8"],
        ["m.gguf", "--temperature", "-1"],
        ["m.gguf", "--temperature", "nan"],
    ],
    ids=" ".join,
)
def test_bad_usage_is_code_2(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stop:
        cli.main(["generate", *arguments])
    assert stop.value.code == 2
    assert "usage: xpurt generate" in capsys.readouterr().err


class Streamer:
    def __init__(self) -> None:
        self.passed: list[int] = []

    def put(self, tokens: torch.Tensor) -> None:
        self.passed += tokens.flatten().tolist()

    def end(self) -> None:
        self.passed.append(-1)


def test_the_rates_of_prompt_and_decode(monkeypatch: pytest.MonkeyPatch) -> None:
    times = iter([10.0, 12.0, 12.5, 13.0])
    monkeypatch.setattr("time.perf_counter", lambda: next(times))
    streamer = Streamer()
    watch = Stopwatch(streamer)
    watch.put(torch.tensor([[1, 2, 3]]))
    assert str(watch) == "prompt 3 tokens"
    watch.put(torch.tensor([4]))
    assert str(watch) == "prompt 3 tokens, 1.5 tokens/s"
    for token in (5, 6):
        watch.put(torch.tensor([token]))
    watch.end()
    assert streamer.passed == [1, 2, 3, 4, 5, 6, -1]
    assert str(watch) == (
        "prompt 3 tokens, 1.5 tokens/s; decode 2 tokens, 2.0 tokens/s"
    )


def test_where_layers_ran() -> None:
    report = OpReport(
        (
            OpRow("xpurt::block_linear", "native", "EPYC", 30, 0, 6.0),
            OpRow("aten::mm", "native", "EPYC", 2, 0, 1.0),
            OpRow("aten::addmm.out", "onednn", "GPU", 1, 0, 2.0),
            OpRow("aten::add.Tensor", "native", "EPYC", 1000, 0, 0.6),
            OpRow("aten::mul.Tensor", "native", "EPYC", 1000, 0, 0.4),
        )
    )
    _, _, *rows = where(report).splitlines()
    assert [row.split() for row in rows] == [
        ["EPYC", "linear", "layers", "native", "32", "70%"],
        ["GPU", "linear", "layers", "onednn", "1", "20%"],
        ["EPYC", "other", "ops", "native", "2,000", "10%"],
    ]
    assert len(where(OpReport(())).splitlines()) == 2
