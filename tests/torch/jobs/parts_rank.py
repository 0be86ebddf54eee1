# SPDX-License-Identifier: MIT
"""One rank of a job over gloo in which each rank has the optimizer's state for some whole tensors, and broadcasts these:
parts_rank.py even|uneven. Of even tensors all ranks have as much."""
import sys

import torch
import torch.distributed as dist
from torch.distributed.optim import ZeroRedundancyOptimizer

torch.set_num_threads(1)
torch.manual_seed(1)
dist.init_process_group("gloo")
rows = [8000, 8000, 8000] if sys.argv[1] == "even" else [24000, 64, 64]
tables = torch.nn.ModuleList(torch.nn.Embedding(n, 64) for n in rows)


class Sum(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.tables = tables

    def forward(self, index):
        return sum(table(index % table.num_embeddings).sum() for table in self.tables)


model = torch.nn.parallel.DistributedDataParallel(Sum())
optimizer = ZeroRedundancyOptimizer(model.parameters(), torch.optim.Adam, lr=0.01)
for _ in range(40):
    optimizer.zero_grad()
    model(torch.randint(0, 24000, (32,))).backward()
    optimizer.step()
dist.barrier()
del model, optimizer, tables  # they hold the group, whose threads may outlive the interpreter: docs/harm.md
dist.destroy_process_group()
