# SPDX-License-Identifier: MIT
"""One rank of a job whose ranks wait for each other's messages in a circle: circle_rank.py KIND"""
import sys

import torch
import torch.distributed as dist


def main():
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank, world, message = dist.get_rank(), dist.get_world_size(), torch.ones(4_000_000)
    for _ in range(12):
        dist.all_reduce(torch.ones(1))
    if sys.argv[1] == "sends" and rank < world // 2:
        dist.send(message, rank + world // 2)  # the first half's
        dist.recv(message, rank + world // 2)
    elif sys.argv[1] == "sends":
        dist.send(message, rank - world // 2)  # the second half's
        dist.recv(message, rank - world // 2)
    elif sys.argv[1] == "send-ring":
        dist.send(message, (rank + 1) % world)  # the send
        dist.recv(message, (rank - 1) % world)
    elif sys.argv[1] == "irecv-ring":
        received = dist.irecv(message, (rank + 1) % world)
        received.wait()  # the wait
        dist.isend(message, (rank - 1) % world).wait()
    elif sys.argv[1] == "batch-ring":
        receive = dist.P2POp(dist.irecv, message, (rank + 1) % world)
        for received in dist.batch_isend_irecv([receive]):
            received.wait()  # the batch
        dist.send(message, (rank - 1) % world)
    elif sys.argv[1] == "recv-and-reduce":
        if rank == 0:
            dist.recv(message, 1)  # the receive of one
        dist.all_reduce(torch.ones(1))  # the all_reduce of the others
        if rank == 1:
            dist.send(message, 0)
    else:
        dist.recv(message, (rank + 1) % world)  # the receive
        dist.send(message, (rank - 1) % world)
    dist.all_reduce(torch.ones(1))


main()
