"""`python -m xpurt simulate --ranks --check`, with ranks that are made up."""

import os
from dataclasses import astuple
from pathlib import Path
from typing import Any

import pytest

from xpurt.command_line import cli
from xpurt_tools.commands import rank_check
from xpurt_tools.simulation import Layer

LATENCY_US, BYTES_PER_US = 100.0, 1e3
LAYERS, OTHER_US = [Layer(1 << 20, 5e4), Layer(1 << 20, 3e4)], 2e4


class MadeUpRanks:
    """Ranks that take exactly what the model says."""

    slower = 1.0

    def __init__(self, ranks: int, mapping: str) -> None:
        self.ranks = ranks
        self.turns = max(1.0, ranks / len(os.sched_getaffinity(0)))

    def all_reduce_us(self, size_bytes: int) -> float:
        message_us = LATENCY_US + size_bytes / self.ranks / BYTES_PER_US
        return self.turns * 2 * (self.ranks - 1) * message_us

    def run(self, work: str, device: str = "xpu", calls: int = 1) -> list[float]:
        name, argument = work.split()
        if name == "all_reduce":
            us = self.all_reduce_us(int(argument))
        else:
            buckets = sum(self.all_reduce_us(each.parameter_bytes) for each in LAYERS)
            us = self.turns * (OTHER_US + 8e4) + buckets
        return [us * self.slower * calls / 1e6] * self.ranks

    def ask(self, work: str, device: str = "xpu", calls: int = 1) -> list[Any]:
        return [[[astuple(each) for each in LAYERS], OTHER_US]] * self.ranks

    def close(self) -> None:
        pass


def ratios(tmp_path: Path) -> list[str]:
    """Measured over predicted, by the line of the summary."""
    path = tmp_path / "page.md"
    path.write_text(f"{rank_check.TABLE.begin}\nold\n{rank_check.TABLE.end}\n")
    assert cli.main(["simulate", "--ranks", "--check", "--markdown", str(path)]) == 0
    text = path.read_text()
    assert "old" not in text
    assert text.count("| all_reduce ") == len(rank_check.SIZES)
    assert text.count("| DDP ") == len(rank_check.NETWORKS)
    lines = [each for each in text.splitlines() if each.startswith("- ")]
    return [each.partition("predicted ")[2].partition(",")[0] for each in lines]


def test_ranks_as_in_the_model_are_predicted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rank_check, "RankGroup", MadeUpRanks)
    assert ratios(tmp_path) == ["1.00"] * 6


def test_slower_ranks_are_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Slower(MadeUpRanks):
        def __init__(self, ranks: int, mapping: str) -> None:
            super().__init__(ranks, mapping)
            self.slower = 1.5 if ranks == 8 else 1.0

    monkeypatch.setattr(rank_check, "RankGroup", Slower)
    assert ratios(tmp_path) == ["1.00", "1.00", "1.50"] * 2
