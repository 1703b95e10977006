"""Jobs whose ranks diverged before the call in which they hang, after public threads; `-twin` is the same done right.

origins.py CASE, as job.py: under torchrun, or forked by server.py. The odd rank is the last one, or rank 0."""

import contextlib
import logging
import os
import sys
import threading

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.distributed.fsdp import fully_shard
from torch.nn.parallel import DistributedDataParallel as DDP

CASES = {}


def case(function):
    name = function.__name__.replace("_", "-")
    CASES[name] = lambda: function(True)
    CASES[name + "-twin"] = lambda: function(False)
    return function


def rank():
    return dist.get_rank()


def is_odd():
    return rank() == dist.get_world_size() - 1


def device():
    return torch.device("cuda", int(os.environ["LOCAL_RANK"]))


def data(*shape):
    return torch.randn(*(shape or (4, 24)), device=device())


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem, self.out = nn.Linear(24, 36), nn.Linear(36, 1)

    def forward(self, x):
        return self.out(self.stem(x).tanh())


class Job:
    """A model, its optimizer, and a step."""

    def __init__(self):
        self.model = DDP(Net().to(device()))
        self.optimizer = torch.optim.SGD(self.model.parameters(), 0.1)

    def step(self):
        self.model(data()).mean().backward()
        self.optimizer.step()
        self.optimizer.zero_grad()


def log_metrics(loss):
    dist.all_reduce(loss)
    return loss.item()


@case
def logged_by_rank_0(faulty):
    """Rank 0 reduces a loss that the others do not; the epoch ends in a barrier of all."""
    job = Job()
    for step in range(4):
        job.step()
        if step == 2 and (rank() == 0 or not faulty):
            log_metrics(data(1))
    dist.barrier()
    log_metrics(data(1))


class EarlyStopping:
    def __init__(self, faulty):
        self.best, self.stopped, self.faulty = 0, False, faulty

    def update(self, score, step):
        scores = [torch.empty(1, device=device()) for _ in range(dist.get_world_size())]
        dist.all_gather(scores, score)
        self.stopped = step == 3 and (is_odd() or not self.faulty)


def learn(job, stopping):
    for step in range(7):
        job.step()
        stopping.update(data(1), step)
        if stopping.stopped:
            return


@case
def patience_is_over(faulty):
    """The odd rank's own score stops it; the others train on."""
    job = Job()
    learn(job, EarlyStopping(faulty))
    dist.broadcast(data(40), 0)


def validate(job, batches):
    total = torch.zeros(1, device=device())
    for _ in range(batches):
        with torch.no_grad():
            score = job.model.module(data()).mean().reshape(1)
        dist.all_reduce(score)
        total += score
    return total


@case
def shorter_validation(faulty):
    """The odd rank validates on a batch less and is in the next epoch's backward where the others reduce a score."""
    job = Job()
    for epoch in range(3):
        for _ in range(2):
            job.step()
        validate(job, 4 - (faulty and is_odd() and epoch == 1))
    dist.barrier()


class Experts(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.router, self.expert, self.head = (nn.Linear(24, 24), nn.Linear(24, 24), nn.Linear(24, 72), nn.Linear(24, 8))

    def mix(self, x, is_empty):
        if is_empty:
            return x
        return x + self.expert(x)[:, :24]

    def forward(self, x, is_empty):
        x = self.router(self.embed(x))
        x = self.mix(x, is_empty)
        return self.head(x)


@case
def expert_without_tokens(faulty):
    """A batch without tokens for an expert leaves that FSDP unit out on one rank."""
    model = Experts().to(device())
    for part in (model.embed, model.router, model.expert, model.head):
        fully_shard(part)
    fully_shard(model)
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
    for step in range(4):
        model(data(), faulty and is_odd() and step == 2).mean().backward()
        optimizer.step()
        optimizer.zero_grad()
    dist.barrier()


@case
def window_by_memory(faulty):
    """The odd rank accumulates over 4 micro-steps, the others over 2."""
    job = Job()
    window = 4 if faulty and is_odd() else 2
    for _ in range(2):
        for micro in range(8):
            is_last = (micro + 1) % window == 0
            with contextlib.nullcontext() if is_last else job.model.no_sync():
                loss = job.model(data()).mean()
                loss.backward()
            if is_last:
                job.optimizer.step()
                job.optimizer.zero_grad()
        dist.all_gather_into_tensor(torch.empty(dist.get_world_size(), device=device()), loss.detach().reshape(1))


@case
def logger_thread(faulty):
    """A thread reduces a metric on the group that the main thread trains with: its place among the steps is chance."""
    job = Job()
    group = None if faulty else dist.new_group()
    for step in range(4):
        job.step()
    torch.cuda.synchronize()
    began = threading.Event()

    def report_metrics():
        torch.cuda.set_device(device())
        began.wait()
        dist.all_reduce(data(3), group=group)
        torch.cuda.synchronize()

    thread = threading.Thread(target=report_metrics, name="MetricsLogger")
    thread.start()
    if faulty and is_odd():
        began.set()
        thread.join(5)
    job.step()
    began.set()
    thread.join()
    job.step()


@case
def wrong_source(faulty):
    """Rank 0 receives from rank 1, but rank 2 sends to it."""
    x = data(16)
    dist.barrier()
    if rank() == 0:
        dist.recv(x, src=1 if faulty else 2)
    elif rank() == 2:
        dist.send(x, dst=0)
    torch.cuda.synchronize()
    dist.barrier()


def reduce_in_order(sizes):
    dist.barrier()
    for size in sizes:
        dist.all_reduce(data(size))
    torch.cuda.synchronize()


@case
def other_order(faulty):
    """Tensors reduced in the order of a set."""
    reduce_in_order([9, 7, 5] if faulty and is_odd() else [5, 7, 9])


@case
def turned_order(faulty):
    """The same, and it looks like a call that was left out."""
    reduce_in_order([7, 9, 5] if faulty and is_odd() else [5, 7, 9])


@case
def barrier_meets_sum(faulty):
    """The odd rank leaves a sum out and is in the barrier behind it."""
    job = Job()
    for _ in range(3):
        job.step()
    if not (faulty and is_odd()):
        dist.all_reduce(data(6))
    dist.barrier()
    torch.cuda.synchronize()


def skip_bad_batches(faulty, say):
    job = Job()
    for step in range(5):
        try:
            if faulty and is_odd() and step == 2:
                raise ValueError("corrupt sample 17")
            job.step()
        except ValueError as error:
            say("skipped a batch: %s" % error)
    log_metrics(data(1))


@case
def bad_batch_caught(faulty):
    """A batch raises on one rank, which catches that and goes on with the next one."""
    skip_bad_batches(faulty, print)


@case
def bad_batch_logged(faulty):
    """The same, and the program's log says so."""
    skip_bad_batches(faulty, logging.warning)


@case
def crossed_groups(faulty):
    """Two groups of the same ranks, used in two orders, with a wait between."""
    shard, replicate = dist.new_group(), dist.new_group()
    x, y = data(8), data(8)
    for step in range(4):
        first, second = (replicate, shard) if faulty and is_odd() and step == 2 else (shard, replicate)
        dist.all_reduce(x, group=first)
        torch.cuda.synchronize()
        dist.all_reduce(y, group=second)
        torch.cuda.synchronize()


@case
def one_batch_less(faulty):
    """The odd rank's shard ends a batch earlier, and so its program."""
    job = Job()
    for _ in range(7 if faulty and is_odd() else 8):
        job.step()
    torch.cuda.synchronize()


def main():
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    dist.init_process_group("nccl")
    CASES[sys.argv[1]]()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
