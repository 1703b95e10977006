"""Work on a tensor that is still reduced, by PyTorch's libraries and kernels: each fault, and what is allowed.

Cases: "early" (nobody waits for the all_reduce), "waited" (its twin), "shared" (the tensor is only read, as the all_gather that
runs reads it). A read is DC302, a write DC301. No two of these launch the same kernel: that would be one finding."""

import os
import sys

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

SIDE = 64


def numbers(*shape, **options):
    return torch.ones(*(shape or (SIDE, SIDE)), device="cuda", **options)


def indices():
    return torch.arange(8, device="cuda")


def attend(x, backend):
    queries = numbers(1, 4, 16, 64, dtype=torch.float16)
    with sdpa_kernel(backend):
        return F.scaled_dot_product_attention(queries, x.view(1, 4, 16, 64), x.view(1, 4, 16, 64))


READS = [
    lambda x: x @ numbers(),
    lambda x: torch.addmm(numbers(SIDE), x, numbers()),
    lambda x: torch.bmm(x.view(4, 16, SIDE), numbers(4, SIDE, 16)),
    lambda x: torch.mv(x, numbers(SIDE)),
    lambda x: F.conv2d(x.view(1, 1, SIDE, SIDE), numbers(1, 1, 3, 3)),
    lambda x: F.batch_norm(x.view(1, 4, 16, SIDE), None, None, training=True),
    lambda x: x[indices(), indices()],
    lambda x: torch.gather(x, 0, indices().view(1, 8)),
]
READS_OF_HALF = [
    lambda x: x @ numbers(dtype=torch.float16),
    lambda x: attend(x, SDPBackend.FLASH_ATTENTION),
    lambda x: attend(x, SDPBackend.EFFICIENT_ATTENTION),
    lambda x: attend(x, SDPBackend.CUDNN_ATTENTION),
]
WRITES = [
    lambda x: torch.mm(numbers(), numbers(), out=x),
    lambda x: x.index_put_((indices(), indices()), numbers(8)),
    lambda x: x.scatter_(0, indices().view(1, 8), 1.0),
]


def tensors():
    for operations, options in ((READS, {}), (READS_OF_HALF, {"dtype": torch.float16}), (WRITES, {})):
        for operation in operations:
            yield operation, numbers(**options)


def main():
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    dist.init_process_group("nccl", device_id=torch.device("cuda", int(os.environ["LOCAL_RANK"])))
    for operation, x in tensors():
        torch.cuda.synchronize()
        if sys.argv[1] == "shared":
            work = dist.all_gather_into_tensor(numbers(dist.get_world_size() * SIDE, SIDE, dtype=x.dtype), x, async_op=True)
        else:
            work = dist.all_reduce(x, async_op=True)
        if sys.argv[1] == "waited":
            work.wait()
        if sys.argv[1] != "shared" or operation not in WRITES:
            operation(x)
        work.wait()
    torch.cuda.synchronize()
    dist.destroy_process_group()
