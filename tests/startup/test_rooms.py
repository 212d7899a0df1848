"""Rooms that are libraries of their own are loaded when a program asks for them."""

import pytest
from own_process import output

USE = {
    "_layouts": """
with xpurt.autocast("cpu"):
    assert "xpurt._layouts" not in sys.modules
with xpurt.autocast("cpu", layout=torch.mkldnn):
    pass
""",
    "_lazy": "import xpurt.lazy; xpurt.lazy.init()",
    "_prototype": 'xpurt.prototype_device("ipu")',
}


@pytest.mark.parametrize("room", USE)
def test_a_room_is_loaded_when_it_is_asked_for(room: str) -> None:
    code = f"""
import sys, torch, xpurt
torch.ones(2, device="xpu").sum().item()
print(sorted(name for name in ("xpurt.lazy", "xpurt.prototype") if name in sys.modules))
print("xpurt.{room}" in sys.modules)
{USE[room]}
print("xpurt.{room}" in sys.modules)
"""
    assert output(code, fresh=True).splitlines() == ["[]", "False", "True"]
