# SPDX-License-Identifier: MIT
"""A PyTorch Lightning module as its users write one, on two processes that Lightning starts itself, with its default
logger. lightning_fit.py OUTPUT_DIR"""
import sys

import lightning
import torch
from lightning.pytorch.loggers import CSVLogger


class Net(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.ReLU(),
                                       torch.nn.Linear(256, 64))

    def training_step(self, batch, _):
        loss = ((self.net(batch[0]) - batch[0]) ** 2).mean()
        self.log("loss", loss)
        self.log("lr", self.optimizers().param_groups[0]["lr"])
        return loss

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=1e-3)


torch.manual_seed(0)
data = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.randn(512, 64)),
                                   batch_size=8)
lightning.Trainer(accelerator="cpu", devices=2, strategy="ddp", max_steps=20, log_every_n_steps=1,
                  logger=CSVLogger(sys.argv[1], name=None, version=""), enable_checkpointing=False,
                  enable_progress_bar=False, enable_model_summary=False).fit(Net(), data)
