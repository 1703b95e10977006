"""Groups of ranks that PyTorch splits off the default group's communicator, as it does with a device_id.

Cases: "crossed" (the last rank creates the two groups in the other order: nothing hangs, and it is alone in its group), "ordered"
(its twin)."""

import os
import sys

import torch
import torch.distributed as dist


def main():
    rank, ranks = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    torch.cuda.set_device(rank)
    dist.init_process_group("nccl", device_id=torch.device("cuda", rank))
    first, others = [0], list(range(1, ranks))
    if sys.argv[1] == "crossed" and rank == ranks - 1:
        group = dist.new_group(others)
        dist.new_group(first)
    else:
        dist.new_group(first)
        group = dist.new_group(others)
    if rank in others:
        dist.all_reduce(torch.ones(4, device="cuda"), group=group)
    torch.cuda.synchronize()
    dist.destroy_process_group()
