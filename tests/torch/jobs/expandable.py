# SPDX-License-Identifier: MIT
"""Segments that grow and shrink: prints what the allocator says it holds of the device, after it grew
and after it gave back what was not used."""
import torch

kept = []
for turn in range(12):
    tensors = [torch.empty((size << 20) + turn, dtype=torch.uint8, device="cuda")
               for size in (1, 30, 70)]
    kept.append(tensors[turn % 3])
    del tensors
grown = torch.cuda.memory_reserved()
del kept[1::2]
torch.cuda.synchronize()
torch.cuda.empty_cache()
print(grown, torch.cuda.memory_reserved())
