# SPDX-License-Identifier: MIT
"""Ordinary data-parallel training for srun: the ranks are Slurm's tasks."""
import os
import time

import torch
import torch.distributed as dist

job = int(os.environ["SLURM_JOB_ID"])
os.environ.update(RANK=os.environ["SLURM_PROCID"], WORLD_SIZE=os.environ["SLURM_NTASKS"],
                  LOCAL_RANK=os.environ["SLURM_LOCALID"], MASTER_ADDR="127.0.0.1",
                  MASTER_PORT=str(20000 + job % 10000))
dist.init_process_group("gloo")
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(64, 64))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for _ in range(40):
    loss = model(torch.randn(16, 64)).square().mean()
    if dist.get_rank() == 3:
        time.sleep(0.1)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
dist.destroy_process_group()
