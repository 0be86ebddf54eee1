# SPDX-License-Identifier: MIT
"""Calls each of gloo's collectives once, in an order and with sizes that training.py knows."""
import torch
import torch.distributed as dist

dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
other = dist.new_group(list(range(world)))


def ones(count, dtype=torch.float32):
    return torch.ones(count, dtype=dtype)


dist.all_reduce(ones(100))
dist.all_reduce(ones(30, torch.int64), op=dist.ReduceOp.MAX)
dist.broadcast(ones(7, torch.float64), src=1)
dist.reduce(ones(11), dst=1, op=dist.ReduceOp.PRODUCT)
dist.all_gather([ones(5) for _ in range(world)], ones(5))
dist.all_gather_into_tensor(ones(6 * world), ones(6))
dist.gather(ones(8), [ones(8) for _ in range(world)] if rank == 0 else None, dst=0)
dist.scatter(ones(9), [ones(9) for _ in range(world)] if rank == 1 else None, src=1)
dist.all_to_all_single(ones(4 * world), ones(4 * world))
dist.barrier()
work = dist.all_reduce(ones(3, torch.bfloat16), group=other, async_op=True)
work.wait()
if rank == 0:
    dist.send(ones(12), dst=1)
    dist.recv(ones(13), src=1)
else:
    dist.recv(ones(12), src=0)
    dist.send(ones(13), dst=0)
dist.destroy_process_group()
del other, work  # from 2.15 on a group ends when nothing refers to it any more
