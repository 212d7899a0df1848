"""The faults that are planted in layers are in code that is there."""

from pathlib import Path

import pytest
from mutants.faults_of_layers import FAULTS

import xpurt


@pytest.mark.parametrize("layer", FAULTS)
def test_each_line_is_there_once(layer: str) -> None:
    package = Path(xpurt.__file__).parent
    gone = [
        str(fault)
        for fault in FAULTS[layer]
        if (package / fault.file).read_text().count(f"{fault.line}\n") != 1
    ]
    assert gone == []
