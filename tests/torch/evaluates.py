"""README's PyTorch program: only rank 0 evaluates, and reduces the loss over all ranks."""

import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


def evaluate(model, images):
    loss = model(images).square().mean()
    dist.all_reduce(loss)
    return loss.item() / dist.get_world_size()


def train(model, images, rank):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for epoch in range(4):
        for _ in range(4):
            model(images).square().mean().backward()
            optimizer.step()
            optimizer.zero_grad()
        if rank == 0:
            print("epoch %d: loss %.4f" % (epoch, evaluate(model.module, images)))


def main():
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
    torch.cuda.set_device(device)
    dist.init_process_group("nccl", device_id=device)
    model = DistributedDataParallel(torch.nn.Linear(64, 64, device=device))
    train(model, torch.ones(8, 64, device=device), dist.get_rank())
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
