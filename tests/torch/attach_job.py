"""A training job for test_attach.py: attach_job.py CASE, its rank in RANK, WORLD_SIZE and MASTER_ADDR as of a launcher.

A case names what the last rank does while the others wait for it in a collective; "right" trains for a while, and each
rank prints what it has computed."""

import os
import subprocess
import sys
import threading
import time

import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, Dataset


class Samples(Dataset):
    def __len__(self):
        return 8

    def __getitem__(self, index):
        time.sleep(600)


def load_batches():
    for batch in DataLoader(Samples(), num_workers=1):
        return batch


def take_lock_twice():
    lock = threading.Lock()
    lock.acquire()
    lock.acquire()


def evaluate():
    while True:
        time.sleep(1)


def run_program():
    subprocess.run(["sleep", "600"], check=False)


def compute_alone():
    total = 0
    while True:
        total += 1


def reduce_loss(value):
    dist.all_reduce(value)
    return value.item()


ODD = {"loader": load_batches, "lock": take_lock_twice, "evaluates": evaluate, "program": run_program, "computes": compute_alone,
       "exits": lambda: os._exit(0)}


def main():
    case, rank, ranks = sys.argv[1], int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    odd = rank == ranks - 1
    if case == "never-joins" and odd:
        evaluate()
    device = "cuda" if os.environ["BACKEND"] == "nccl" else "cpu"
    if device == "cuda":
        torch.cuda.set_device(rank)
    dist.init_process_group(os.environ["BACKEND"])
    value = torch.ones(4, device=device)
    dist.all_reduce(value)
    print("ready", flush=True)
    if case == "right":
        total, end = 0, time.monotonic() + 8
        step = torch.zeros(1, device=device)
        while not step.item():
            total += 1
            dist.all_reduce(value)
            time.sleep(0.01)
            step.fill_(float(rank == 0 and time.monotonic() > end))
            dist.broadcast(step, 0)
        print("done", total > 10, flush=True)
        return
    if case == "in-thread":         # the main threads only wait for it
        train = threading.Thread(target=lambda: evaluate() if odd else reduce_loss(value[:1].sum()))
        train.start()
        train.join()
    if odd and case in ODD:
        ODD[case]()
    if odd and case == "different":
        dist.broadcast(value, 0)
    reduce_loss(value[:1].sum())


main()
