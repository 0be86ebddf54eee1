# SPDX-License-Identifier: MIT
"""Segments that grow and shrink: prints how much device memory the allocator holds according to its own counts, after
it grew and after it released what was not used."""
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
