"""A DDP job of PyTorch that prints its rate: a small convolutional net on images of 32x32, 16 for each rank."""

import time

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel

BATCH, WARM, STEPS = 16, 20, 200


def block(width_in, width_out):
    return nn.Sequential(nn.Conv2d(width_in, width_out, 3, stride=2, padding=1), nn.BatchNorm2d(width_out), nn.ReLU())


def main():
    dist.init_process_group("nccl", device_id=torch.device("cuda", 0))
    model = nn.Sequential(block(3, 32), block(32, 64), block(64, 128), block(128, 256), nn.Flatten(), nn.Linear(1024, 10)).cuda()
    model = DistributedDataParallel(model, bucket_cap_mb=1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    images, labels = torch.randn(BATCH, 3, 32, 32, device="cuda"), torch.randint(10, (BATCH, ), device="cuda")
    for step in range(WARM + STEPS):
        if step == WARM:
            torch.cuda.synchronize()
            begin = time.perf_counter()
        optimizer.zero_grad()
        F.cross_entropy(model(images), labels).backward()
        optimizer.step()
    torch.cuda.synchronize()
    rate = STEPS * BATCH * dist.get_world_size() / (time.perf_counter() - begin)
    if dist.get_rank() == 0:
        print("%.1f images/s" % rate, flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
