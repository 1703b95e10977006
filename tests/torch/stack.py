"""What PyTorch's NCCL backend does differently since 2.15: small jobs, clean and faulty. The last rank is the odd one.

Cases: "objects" (lists of objects, whose sizes the GPU reduces), "barrier" (the first call: its buffer was never written),
"unwritten" (one element that nothing wrote is reduced, and read), "gathered" (an all_gather of broadcasts, which the odd rank
leaves out), "metrics" (a group with a description, whose all_reduce the odd rank leaves out), "symmetric" (symmetric memory)."""

import os
import sys
import time

import torch
import torch.distributed as dist


def is_odd():
    return dist.get_rank() == dist.get_world_size() - 1


def objects():
    rank, ranks = dist.get_rank(), dist.get_world_size()
    shared = [{"a": [1, 2, 3]}, "name"] if rank == 0 else [None, None]
    dist.broadcast_object_list(shared, 0)
    assert shared == [{"a": [1, 2, 3]}, "name"], shared
    gathered = [None] * ranks
    dist.all_gather_object(gathered, "x" * (rank + 3))
    assert gathered == ["x" * (k + 3) for k in range(ranks)], gathered
    own = [None]
    dist.scatter_object_list(own, ["y" * (k + 1) for k in range(ranks)] if rank == 0 else None, src=0)
    assert own == ["y" * (rank + 1)], own
    numbers = torch.tensor([3, 1, 2], device="cuda")
    assert (numbers.max().item(), numbers.min().item(), numbers.sum().item()) == (3, 1, 6)


def barrier():
    dist.barrier()
    dist.all_reduce(torch.ones(4, device="cuda"))
    dist.barrier()


def unwritten():
    dist.barrier()
    flag = torch.empty(1 << 20, device="cuda")[:1]
    dist.all_reduce(flag)
    flag.item()


def gathered():
    dist.barrier()
    for step in range(3):
        if is_odd() and step == 2:
            time.sleep(600)
        dist.all_gather([torch.empty(k + 1, device="cuda") for k in range(dist.get_world_size())],
                        torch.ones(dist.get_rank() + 1, device="cuda"))


def metrics():
    group = dist.new_group(list(range(dist.get_world_size())), group_desc="metrics")
    dist.all_reduce(torch.ones(4, device="cuda"))
    dist.all_reduce(torch.ones(4, device="cuda"), group=group)
    if is_odd():
        time.sleep(600)
    dist.all_reduce(torch.ones(4, device="cuda"), group=group)


def symmetric():
    import torch.distributed._symmetric_memory as symm
    dist.barrier()
    tensor = symm.empty(1024, device=torch.device("cuda", dist.get_rank()))
    handle = symm.rendezvous(tensor, dist.group.WORLD)
    tensor.fill_(1)
    handle.barrier()
    torch.ops.symm_mem.one_shot_all_reduce(tensor, "sum", dist.group.WORLD.group_name)


def main():
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    dist.init_process_group("nccl")
    globals()[sys.argv[1]]()
    torch.cuda.synchronize()
    dist.destroy_process_group()
