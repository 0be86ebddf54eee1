# SPDX-License-Identifier: MIT
"""One rank of a training job on GPUs as in ordinary user code: accumulated gradients, validation of the unwrapped
model every some steps, checkpoints by rank 0 every some others, the loss read every some others. Rank 0 prints as JSON
which steps held what.

    kinds_rank.py FILE [--steps N] [--accumulate N] [--validate-every N] [--save-every N] [--log-every N]
"""
import argparse
import json
import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


def parse_arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("file")
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--accumulate", type=int, default=4)
    parser.add_argument("--validate-every", type=int, default=10)
    parser.add_argument("--batches", type=int, default=32, help="of a validation")
    parser.add_argument("--save-every", type=int, default=25)
    parser.add_argument("--log-every", type=int, default=0)
    parser.add_argument("--saves", type=int, default=12, help="as if the model were larger by this factor")
    return parser.parse_args()


def validate(model, loss_of, batches, device):
    model.eval()
    with torch.no_grad():
        sum(loss_of(model(inputs.to(device)), targets.to(device)) for inputs, targets in batches).item()
    model.train()


def save(model, options):
    for _ in range(options.saves):
        with open(options.file, "wb") as out:
            torch.save(model.state_dict(), out)
            out.flush()
            os.fsync(out.fileno())


def main():
    options = parse_arguments()
    torch.manual_seed(1)
    torch.set_num_threads(1)
    rank, ranks = int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1"))
    device = torch.device("cuda", rank)
    torch.cuda.set_device(device)
    plain = torch.nn.Sequential(*[torch.nn.Linear(256, 256), torch.nn.ReLU()] * 4).to(device)
    if ranks > 1:
        dist.init_process_group("nccl", device_id=device)
    model = DistributedDataParallel(plain, device_ids=[rank]) if ranks > 1 else plain
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    loss_of = torch.nn.MSELoss()
    batch = (torch.randn(64, 256), torch.randn(64, 256))
    held = {"validation": [], "checkpoint": [], "log": []}
    for step in range(1, options.steps + 1):
        for part in range(options.accumulate):
            if ranks > 1:
                model.require_backward_grad_sync = part == options.accumulate - 1
            loss = loss_of(model(batch[0].to(device)), batch[1].to(device)) / options.accumulate
            loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        for kind, every in (("validation", options.validate_every), ("checkpoint", options.save_every),
                            ("log", options.log_every)):
            if every and step % every == 0 and step < options.steps:
                held[kind].append(step)
                if kind == "validation":
                    validate(plain, loss_of, [batch] * options.batches, device)
                elif kind == "log":
                    loss.item()
                elif rank == 0:
                    save(plain, options)
    torch.cuda.synchronize()
    if rank == 0:
        print(json.dumps(held), flush=True)
    if ranks > 1:
        dist.destroy_process_group()


main()
