# SPDX-License-Identifier: MIT
"""The same job in four frameworks, as their users write it: rank 1 is slow at one line. slow_framework.py FRAMEWORK
OUTPUT_DIR. accelerate and trainer run under torchrun; lightning and ray start their ranks themselves."""
import os
import sys
import time

os.environ["HF_HUB_OFFLINE"] = "1"

import torch
import torch.distributed as dist

RANKS, STEPS, SLOW_S = 2, 80, 0.03


def read(batch):
    if dist.get_rank() == 1:
        time.sleep(SLOW_S)  # the slow line
    return batch


def loss_of(net, batch):
    return ((net(batch) - batch) ** 2).mean()


def new_net():
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(64, 512), torch.nn.ReLU(), torch.nn.Linear(512, 64))


def new_data():
    return torch.utils.data.TensorDataset(torch.randn(8 * STEPS * RANKS, 64))


def by_lightning(out):
    import lightning

    class Module(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.net = new_net()

        def training_step(self, batch, _):
            return loss_of(self.net, read(batch[0]))

        def configure_optimizers(self):
            return torch.optim.AdamW(self.parameters(), lr=1e-3)

    lightning.Trainer(accelerator="cpu", devices=RANKS, strategy="ddp", max_steps=STEPS, logger=False,
                      default_root_dir=out, enable_checkpointing=False, enable_progress_bar=False,
                      enable_model_summary=False).fit(Module(), torch.utils.data.DataLoader(new_data(), batch_size=8))


def by_accelerate(_):
    from accelerate import Accelerator
    accelerator = Accelerator(cpu=True)
    net = new_net()
    net, optimizer, loader = accelerator.prepare(net, torch.optim.AdamW(net.parameters(), lr=1e-3),
                                                 torch.utils.data.DataLoader(new_data(), batch_size=8))
    for batch, in loader:
        optimizer.zero_grad()
        accelerator.backward(loss_of(net, read(batch)))
        optimizer.step()


def by_trainer(out):
    from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments

    def collate(items):
        tokens = read(torch.stack([item[0] for item in items]))
        return {"input_ids": tokens, "labels": tokens}

    model = GPT2LMHeadModel(GPT2Config(vocab_size=128, n_positions=64, n_embd=64, n_layer=2, n_head=2))
    arguments = TrainingArguments(output_dir=out, max_steps=STEPS, per_device_train_batch_size=4, report_to=[],
                                  use_cpu=True, save_strategy="no", ddp_backend="gloo")
    data = torch.utils.data.TensorDataset(torch.randint(0, 128, (8 * STEPS * RANKS, 32)))
    Trainer(model=model, args=arguments, train_dataset=data, data_collator=collate).train()


def by_ray(out):
    """Each rank trains in a thread of its own, which Ray starts."""
    import ray
    from ray.train import RunConfig, ScalingConfig
    from ray.train.torch import TorchConfig, TorchTrainer, prepare_model

    def train():
        net = prepare_model(new_net())
        optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3)
        for batch, in torch.utils.data.DataLoader(new_data(), batch_size=8 * RANKS):
            optimizer.zero_grad()
            loss_of(net, read(batch)).backward()
            optimizer.step()

    ray.init(num_cpus=RANKS + 1, include_dashboard=False)
    TorchTrainer(train, torch_config=TorchConfig(backend="gloo"), scaling_config=ScalingConfig(num_workers=RANKS),
                 run_config=RunConfig(storage_path=out)).fit()


if __name__ == "__main__":
    {"lightning": by_lightning, "accelerate": by_accelerate,
     "trainer": by_trainer, "ray": by_ray}[sys.argv[1]](os.path.abspath(sys.argv[2]))
