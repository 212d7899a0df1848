"""torchao's flow of exported programs with xpurt's quantizer."""

import sys

import pytest
from own_process import run

from xpurt.quantization import XPUQuantizer

# In a process of its own: what PyTorch keeps of an export holds xpu tensors.
FLOW = """
import torch
from torch import nn
from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e
import xpurt
from xpurt.quantization import XPUQuantizer

torch.manual_seed(0)
layers = [nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.Flatten()]
model = nn.Sequential(*layers, nn.Linear(512, 10))
model = model.eval().requires_grad_(False).to("{device}")
x = torch.randn(4, 3, 8, 8, device="{device}")
prepared = prepare_pt2e(
    torch.export.export(model, (x,)).module(), XPUQuantizer(dynamic={dynamic})
)
prepared(x)
program = convert_pt2e(prepared)
wanted, found = model(x), program(x)
assert 0 < (found - wanted).abs().max() < 0.05 * wanted.abs().max()
names = {{str(node.target) for node in program.graph.nodes}}
assert any("dequantize_per_channel" in name for name in names), names
if {compiled}:
    torch.testing.assert_close(torch.compile(program)(x), found)
print("done")
"""


def test_without_torchao_the_error_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in [name for name in sys.modules if name.startswith("torchao")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "torchao", None)
    with pytest.raises(
        ModuleNotFoundError, match=r"pip install .xpurt\[quantization\]"
    ):
        XPUQuantizer()


@pytest.mark.parametrize("dynamic", [False, True], ids=["static", "dynamic"])
@pytest.mark.parametrize(
    ("device", "mapping"), [("cpu", "CPU"), ("xpu", "CPU"), ("xpu", "GPU")]
)
def test_a_converted_program_is_close(device: str, mapping: str, dynamic: bool) -> None:
    pytest.importorskip("torchao", reason="torchao is not installed")
    # Compiled with dynamic activations on xpu: docs/optimize.md says why not.
    compiled = device == "cpu" or not dynamic
    code = FLOW.format(device=device, dynamic=dynamic, compiled=compiled)
    ended = run(code, timeout=300, XPURT_MAPPING=mapping)
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.strip() == "done"
