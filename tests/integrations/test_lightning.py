"""The Trainer and the Fabric of lightning, which find xpu with no import of ours."""

import ast
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
import torch
from own_process import run
from torch.nn.functional import mse_loss
from torch.utils.data import DataLoader, TensorDataset

import xpurt
from xpurt.integrations import lightning as told

lightning = pytest.importorskip("lightning")
pytestmark = [
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]

SEED = torch.Generator().manual_seed(0)
DATA = TensorDataset(
    torch.rand(32, 4, generator=SEED), torch.rand(32, 1, generator=SEED)
)
QUIET: dict[str, Any] = {
    "logger": False,
    "enable_checkpointing": False,
    "enable_progress_bar": False,
    "enable_model_summary": False,
}


def network() -> torch.nn.Module:
    torch.manual_seed(0)
    return torch.nn.Sequential(
        torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1)
    )


class Regression(lightning.LightningModule):
    """A small regression that keeps its losses."""

    def __init__(self) -> None:
        super().__init__()
        self.network = network()
        self.losses: list[float] = []
        self.places: set[str] = set()

    def training_step(self, batch: Any, index: int) -> torch.Tensor:
        x, y = batch
        self.places |= {x.device.type, self.network[0].weight.device.type}
        loss = mse_loss(self.network(x), y)
        self.losses.append(loss.item())
        return loss

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.SGD(self.parameters(), lr=0.1, momentum=0.9)


def loader() -> Any:
    return DataLoader(DATA, batch_size=8)


def trained(**options: Any) -> tuple[Regression, Any]:
    module = Regression()
    trainer = lightning.Trainer(**{"max_epochs": 1, **QUIET, **options})
    trainer.fit(module, loader())
    return module, trainer


def plain_losses(dtype: torch.dtype = torch.float32, epochs: int = 1) -> list[float]:
    """The result of a loop without lightning, on the CPU."""
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    scaler = torch.amp.GradScaler("cpu", enabled=dtype == torch.float16)
    mixed = dtype != torch.float32
    found = []
    for _ in range(epochs):
        for x, y in loader():
            optimizer.zero_grad()
            with torch.autocast("cpu", dtype) if mixed else nullcontext():
                loss = mse_loss(model(x), y)
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
            found.append(loss.item())
    return found


@pytest.mark.parametrize("asked", [{}, {"accelerator": "xpu", "devices": 1}])
def test_a_trainer_trains_on_xpu(xpu: torch.device, asked: dict[str, Any]) -> None:
    module, trainer = trained(**asked)
    assert trainer.accelerator.name() == "xpu"
    assert trainer.strategy.root_device == xpu
    assert module.places == {"xpu"}
    assert module.losses == pytest.approx(plain_losses(), rel=1e-4)


@pytest.mark.parametrize(
    ("precision", "dtype", "tolerance"),
    [("bf16-mixed", torch.bfloat16, 2e-2), ("16-mixed", torch.float16, 5e-3)],
)
def test_mixed_precision_is_of_xpu(
    xpu: torch.device, precision: Any, dtype: torch.dtype, tolerance: float
) -> None:
    module, trainer = trained(precision=precision)
    plugin = trainer.precision_plugin
    assert plugin.device == "xpu"
    assert (plugin.scaler is not None) == (dtype == torch.float16)
    assert module.losses == pytest.approx(plain_losses(dtype), rel=tolerance)
    if plugin.scaler is not None:  # it did scale, on the device
        assert plugin.scaler.is_enabled()
        assert plugin.scaler._scale.device.type == "xpu"


def test_a_checkpoint_goes_on_where_it_ended(xpu: torch.device, tmp_path: Path) -> None:
    path = tmp_path / "last.ckpt"
    first, trainer = trained()
    trainer.save_checkpoint(path)
    module = Regression()
    again = lightning.Trainer(max_epochs=2, **QUIET)
    again.fit(module, loader(), ckpt_path=path)
    assert module.places == {"xpu"}
    expected = plain_losses(epochs=2)
    assert first.losses + module.losses == pytest.approx(expected, rel=1e-4)
    # And on the CPU.
    loaded = Regression.load_from_checkpoint(path, map_location="cpu")
    assert loaded.network[0].weight.is_cpu


def test_device_statistics_are_those_of_memory(xpu: torch.device) -> None:
    x = torch.ones(1000, device=xpu)
    accelerator = lightning.Trainer(**QUIET).accelerator
    found = accelerator.get_device_stats(xpu)
    assert found == torch.xpu.memory_stats(xpu)
    assert found["allocated_bytes.all.current"] >= x.nbytes


@pytest.mark.parametrize("precision", [None, "bf16-mixed", "16-mixed"])
def test_fabric(xpu: torch.device, precision: Any) -> None:
    fabric = lightning.Fabric(precision=precision)
    assert fabric.device == xpu
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    model, optimizer = fabric.setup(model, optimizer)
    found = []
    for x, y in fabric.setup_dataloaders(loader()):
        assert x.device == xpu
        optimizer.zero_grad()
        loss = mse_loss(model(x), y)
        fabric.backward(loss)
        optimizer.step()
        found.append(loss.item())
    dtype = {"bf16-mixed": torch.bfloat16, "16-mixed": torch.float16}.get(precision)
    expected = plain_losses(dtype or torch.float32)
    assert found == pytest.approx(expected, rel=2e-2 if dtype else 1e-4)


@pytest.fixture(params=["Trainer", "Fabric"])
def made(request: pytest.FixtureRequest) -> Callable[..., Any]:
    """A Trainer or a Fabric by its options."""
    options = QUIET if request.param == "Trainer" else {}
    return lambda **asked: getattr(lightning, request.param)(**options, **asked)


@pytest.fixture
def parts() -> Iterator[int]:
    """Two ordinals on one CPU."""
    cpu = next(d for d in xpurt.physical_devices() if d.kind == "cpu")
    if cpu.compute_units % 2:
        pytest.skip("the CPU can't be split in two")
    half = cpu.compute_units // 2
    with xpurt.xpu_mapping("explicit", devices="cpu", partition=[half, half]):
        yield 2


@pytest.mark.parametrize(
    ("devices", "expected"),
    [
        (1, [0]),
        ("1", [0]),
        ("1,", [1]),
        ([1], [1]),
        (2, [0, 1]),
        ("0,1", [0, 1]),
        (-1, [0, 1]),
        ("-1", [0, 1]),
    ],
)
def test_devices_by_number_and_by_index(
    parts: int, devices: Any, expected: list[int]
) -> None:
    assert told.parse_devices(devices) == expected


@pytest.mark.parametrize(
    ("devices", "said"),
    [
        (3, 'wants 3 of xpu; mapping "EXPLICIT" has 2'),
        ([0, 2], "wants"),
        ([0, 0], "names no xpu devices"),
        ("two", "names no xpu devices. There are 2"),
        (None, "names no xpu devices"),
        (-2, "names no xpu devices"),
        (True, "names no xpu devices"),
    ],
)
def test_devices_that_are_not_there(parts: int, devices: Any, said: str) -> None:
    with pytest.raises(xpurt.MappingError, match=f"(?i){said}"):
        told.parse_devices(devices)


def test_several_devices_are_ddp(parts: int, made: Callable[..., Any]) -> None:
    one = made(devices=[1])
    assert one.strategy.root_device == torch.device("xpu:1")
    both = made()
    assert [str(each) for each in both.strategy.parallel_devices] == ["xpu:0", "xpu:1"]
    assert both.strategy.process_group_backend == "cpu:gloo,xpu:xccl"


def test_a_strategy_by_its_name_is_for_xpu() -> None:
    trainer = lightning.Trainer(strategy="single_device", **QUIET)
    assert trainer.strategy.root_device.type == "xpu"


def test_what_forks_is_refused(made: Callable[..., Any]) -> None:
    with (
        xpurt.xpu_mapping("CPU"),
        pytest.raises(xpurt.MappingError, match=r"forked process.*strategy="),
    ):
        made(accelerator="xpu", strategy="ddp_fork")


@pytest.mark.parametrize("mapping", ["GPU", "explicit"])
def test_one_of_unequal_devices_is_taken_and_all_on_request(
    made: Callable[..., Any], mapping: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    with xpurt.xpu_mapping(mapping):
        count = torch.xpu.device_count()
        assert made().strategy.root_device == torch.device("xpu:0")
        assert ("xpu:0 alone is used, of 2" in caplog.text) == (count > 1)
        asked = made(strategy="ddp", accelerator="xpu", devices=count)
        assert len(asked.strategy.parallel_devices) == count


@pytest.mark.parametrize("accelerator", ["xpu", "auto"])
def test_fsdp_keeps_its_own_mixed_precision(
    made: Callable[..., Any], accelerator: str
) -> None:
    with xpurt.xpu_mapping("CPU"):
        asked = made(strategy="fsdp", accelerator=accelerator, precision="bf16-mixed")
    strategy = asked.strategy
    assert strategy.process_group_backend == "cpu:gloo,xpu:xccl"
    # The attribute's names in Trainer's strategies, and in Fabric's.
    precision = getattr(strategy, "precision_plugin", None) or strategy.precision
    assert type(precision).__name__ == "FSDPPrecision"


def test_gpu_is_xpu_where_it_has_one(made: Callable[..., Any]) -> None:
    if torch.cuda.is_available():
        pytest.skip("lightning takes the CUDA GPU")
    with xpurt.xpu_mapping("GPU"):
        assert made(accelerator="gpu").strategy.root_device.type == "xpu"
    with (
        xpurt.xpu_mapping("CPU"),
        pytest.raises(Exception, match=r"No supported gpu.*accelerator=\"xpu\""),
    ):
        made(accelerator="gpu")


def test_a_strategy_for_another_device_is_refused(xpu: torch.device) -> None:
    strategy = lightning.pytorch.strategies.SingleDeviceStrategy("cpu")
    trainer = lightning.Trainer(accelerator="xpu", strategy=strategy, **QUIET)
    with pytest.raises(xpurt.MappingError, match="strategy is for cpu"):
        trainer.fit(Regression(), loader())


def test_a_program_can_still_have_the_cpu(xpu: torch.device) -> None:
    module, _ = trained(accelerator="cpu")
    assert module.places == {"cpu"}


def test_without_xpu_auto_is_the_cpu(
    made: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.accelerator, "current_accelerator", lambda: None)
    assert not told.is_available()
    assert made(accelerator="auto").strategy.root_device.type == "cpu"


TWO_RANKS = """
import sys
from pathlib import Path
import torch, xpurt
from integrations.test_lightning import trained
if __name__ == "__main__":
    half = int(sys.argv[1])
    xpurt.set_xpu_mapping("explicit", devices="cpu", partition=[half, half])
    module, trainer = trained(devices=2)
    rank = trainer.global_rank
    assert module.places == {"xpu"}, module.places
    assert trainer.strategy.root_device == torch.device("xpu", rank)
    found = [module.network[0].weight.tolist(), module.losses]
    Path(sys.argv[0]).with_name(f"rank{rank}").write_text(repr(found))
"""


@pytest.mark.slow
def test_two_ranks_train_the_same_weights(parts: int, tmp_path: Path) -> None:
    """lightning starts the script once more for the second rank."""
    half = xpurt.mapping.current_placement().ordinals[0][0].compute_units
    script = tmp_path / "script.py"
    script.write_text(TWO_RANKS)
    tests = Path(__file__).parents[1]
    ended = subprocess.run(
        [sys.executable, str(script), str(half)],
        capture_output=True,
        text=True,
        timeout=600,
        env={**os.environ, "PYTHONPATH": str(tests), "XPURT_MAPPING": "CPU"},
    )
    assert ended.returncode == 0, ended.stderr
    weights, losses = zip(
        *(ast.literal_eval((tmp_path / f"rank{rank}").read_text()) for rank in (0, 1)),
        strict=True,
    )
    assert weights[0] == weights[1]
    assert weights[0] != network()[0].weight.tolist()
    assert losses[0] != losses[1]  # each has data of its own


@pytest.mark.slow
@pytest.mark.parametrize("package", ["lightning.pytorch", "pytorch_lightning"])
@pytest.mark.parametrize("order", ["import torch, {}", "import torch, {}, xpurt"])
def test_in_each_package_and_order(package: str, order: str) -> None:
    late = order.endswith("xpurt")
    ended = run(
        f"{order.format(package)}\n"
        f"print({package}.Trainer(logger=False).strategy.root_device)\n"
        f"print({package}.accelerators.XPUAccelerator.__module__)\n",
        fresh=True,
        timeout=300,
        TORCH_DEVICE_BACKEND_AUTOLOAD="0" if late else "1",
    )
    assert ended.stdout.split() == ["xpu:0", f"{package}.accelerators"], ended.stderr
