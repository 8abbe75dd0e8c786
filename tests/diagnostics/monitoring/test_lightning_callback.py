"""The monitor in Lightning's own trainer."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from torch_geometric.nn import GCN

from diagnostics.faulty_models import features, grid
from eamp.diagnostics import CollapseWarning, Monitor

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),  # Lightning's, on import
    pytest.mark.filterwarnings("ignore::FutureWarning"),
]
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    pl = pytest.importorskip("lightning.pytorch", reason="needs lightning, of eamp[test]")


class Network(pl.LightningModule):
    def __init__(self) -> None:
        super().__init__()
        self.net = GCN(32, 16, 24)

    def training_step(self, batch: Tensor, index: int) -> Tensor:
        return self.net(batch[0], grid()).square().mean()

    def configure_optimizers(self) -> Any:
        return torch.optim.SGD(self.parameters(), lr=1e-3)


def test_the_trainer_logs_what_the_monitor_measures(tmp_path: Path) -> None:
    from lightning.pytorch.loggers import CSVLogger

    torch.manual_seed(0)
    network = Network()
    monitor = Monitor(network, every=2, folder=tmp_path / "monitor")
    logger = CSVLogger(tmp_path, name="logs")
    trainer = pl.Trainer(
        max_epochs=3,
        accelerator="cpu",
        logger=logger,
        callbacks=[monitor.callback()],
        enable_progress_bar=False,
        enable_checkpointing=False,
        enable_model_summary=False,
        log_every_n_steps=1,
    )
    data = torch.utils.data.DataLoader([features(), features()], batch_size=1)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        trainer.fit(network, data)
    assert monitor.table()["epoch"].unique().tolist() == [0, 2]
    assert len(monitor.table()) == 2 * 24
    assert monitor.alarms[0].epoch == 0
    assert any(issubclass(each.category, CollapseWarning) for each in caught)
    assert (tmp_path / "monitor" / "monitor.html").exists()
    logged = next(tmp_path.glob("logs/*/metrics.csv")).read_text()
    assert "eamp/energy/24" in logged
    assert not any(module._forward_hooks for module in network.modules())
