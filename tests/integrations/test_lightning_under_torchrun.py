"""Ranks of lightning that torchrun starts train as one process does."""

from pathlib import Path

import pytest
from torchrun import NETWORK, torchrun

pytest.importorskip("lightning")

PROGRAM = """
import lightning
from torch.utils.data import DataLoader, TensorDataset

class Module(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.network = network()

    def training_step(self, batch, index):
        assert batch[0].device.type == "xpu"
        return mse_loss(self.network(batch[0]), batch[1])

    def configure_model(self):
        if strategy == "model_parallel":
            from torch.distributed.fsdp import fully_shard

            fully_shard(self.network, mesh=self.device_mesh["data_parallel"])

    def configure_optimizers(self):
        return sgd(self.trainer.model)

chosen = strategy
if strategy == "model_parallel":
    from lightning.pytorch.strategies import ModelParallelStrategy

    chosen = ModelParallelStrategy(data_parallel_size=2, tensor_parallel_size=1)
trainer = lightning.Trainer(
    strategy=chosen, accelerator="xpu", devices=2, max_epochs=4, logger=False,
    enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False,
)
module = Module()
trainer.fit(module, DataLoader(TensorDataset(x, y), batch_size=8))
found = {
    name: each.full_tensor() if hasattr(each, "full_tensor") else each
    for name, each in trainer.strategy.lightning_module_state_dict().items()
}
if trainer.is_global_zero:
    for name, expected in alone()[0].state_dict().items():
        each = found["network." + name].cpu()
        torch.testing.assert_close(each, expected, rtol=0, atol=1e-5)
    print("the same")
"""


@pytest.mark.slow
@pytest.mark.parametrize("strategy", ["ddp", "fsdp", "model_parallel"])
def test_two_ranks_train_as_one_process(strategy: str, tmp_path: Path) -> None:
    script = tmp_path / "program.py"
    script.write_text(NETWORK + PROGRAM)
    assert "the same" in torchrun(str(script), strategy)
