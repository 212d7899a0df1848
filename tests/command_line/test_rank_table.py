"""`python -m xpurt simulate --ranks`, on one small network."""

from pathlib import Path

import pytest
import torch
from torch import nn

from xpurt.command_line import cli
from xpurt_tools.bench import Case
from xpurt_tools.commands import rank_table
from xpurt_tools.simulation import buckets_of


def small() -> Case:
    model = nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Linear(64, 4))
    return Case(model, (torch.randn(2, 8),), lambda net, x: net(x).sum())


def test_the_layers_are_the_parameters_in_order(xpu: torch.device) -> None:
    layers, other_us = rank_table.measured_layers(small())
    sizes = [each.nbytes for each in small().model.parameters()]
    assert [each.parameter_bytes for each in layers] == sizes
    assert other_us > 0
    assert sum(each.backward_us for each in layers) > 0
    assert sum(each.size_bytes for each in buckets_of(layers)) == sum(sizes)


def test_the_page_gets_the_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, xpu: torch.device
) -> None:
    monkeypatch.setattr(rank_table, "MODELS", {"small": small})
    page = tmp_path / "page.md"
    page.write_text(f"{rank_table.TABLE.begin}\nold\n{rank_table.TABLE.end}\n")
    assert cli.main(["simulate", "--ranks", "--markdown", str(page)]) == 0
    text = page.read_text()
    assert "old" not in text
    assert text.count("| small |") == len(rank_table.CLUSTERS)
