"""Small training programs, as people write them with PyTorch's ways to train on several GPUs: all are correct.

torchrun --nproc_per_node N train.py [ways|examples|NAME...]: the programs named, of this file or of examples.py, or all of
them, one after the other in one job. N is even.
On emulated GPUs the numbers mean nothing, so nothing here depends on a computed value."""

import contextlib
import os
import shutil
import sys
import tempfile

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
import torch.nn as nn
import torch.nn.functional as F
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.distributed.pipelining import PipelineStage, Schedule1F1B, ScheduleGPipe
from torch.distributed.tensor import Replicate, Shard
from torch.distributed.tensor.parallel import (ColwiseParallel, PrepareModuleInput, RowwiseParallel, SequenceParallel,
                                               parallelize_module)
from torch.nn.parallel import DistributedDataParallel as DDP

from examples import EXAMPLES

WIDTH, STEPS, BATCH = 32, 3, 4
PROGRAMS = {}


def program(function):
    PROGRAMS[function.__name__.replace("_", "-")] = function
    return function


class Block(nn.Module):
    """A residual block of an MLP, with the names that the parallel plans use."""

    def __init__(self):
        super().__init__()
        self.norm, self.up, self.down = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 2 * WIDTH), nn.Linear(2 * WIDTH, WIDTH)

    def forward(self, x):
        return x + self.down(F.gelu(self.up(self.norm(x))))


class LanguageModel(nn.Module):
    def __init__(self, words=50):
        super().__init__()
        self.embedding, self.head = nn.Embedding(words, WIDTH), nn.Linear(WIDTH, words)
        self.layer = nn.TransformerEncoderLayer(WIDTH, 4, 2 * WIDTH, batch_first=True)

    def forward(self, tokens):
        mask = nn.Transformer.generate_square_subsequent_mask(tokens.shape[1], device=tokens.device)
        return self.head(self.layer(self.embedding(tokens), mask, is_causal=True))


def mlp():
    return nn.Sequential(Block(), Block()).cuda()


def data():
    return torch.randn(BATCH, WIDTH, device="cuda")


def train(model, batch=data, optimizer=torch.optim.SGD, steps=STEPS):
    chosen = optimizer(model.parameters(), lr=0.01, foreach=False)     # tensors and DTensors do not mix in one call
    for _ in range(steps):
        loss = model(batch()).float().square().mean()
        loss.backward()
        chosen.step()
        chosen.zero_grad()
    return model


@program
def ddp():
    """Images: convolution, batch norm, mixed precision, and the mean loss of all ranks."""
    layers = nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Flatten(), nn.Linear(8 * 6 * 6, 10)
    model = DDP(nn.Sequential(*layers).cuda())
    optimizer, scaler = torch.optim.AdamW(model.parameters()), torch.amp.GradScaler("cuda")
    for _ in range(STEPS):
        with torch.autocast("cuda"):
            loss = F.cross_entropy(model(torch.randn(BATCH, 3, 8, 8, device="cuda")), torch.randint(10, (BATCH,), device="cuda"))
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad()
    dist.all_reduce(loss.detach(), op=dist.ReduceOp.AVG)


@program
def language_model():
    model = DDP(LanguageModel().cuda())
    for _ in range(STEPS):
        tokens = torch.randint(50, (BATCH, 9), device="cuda")
        F.cross_entropy(model(tokens[:, :-1]).flatten(0, 1), tokens[:, 1:].flatten()).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)


@program
def recurrent():
    model = DDP(nn.LSTM(WIDTH, WIDTH, 2, batch_first=True).cuda())
    for _ in range(STEPS):
        model(torch.randn(BATCH, 5, WIDTH, device="cuda"))[0].mean().backward()


@program
def gan():
    """Two networks with an optimizer each; the generator is trained through the discriminator."""
    generator, discriminator = DDP(mlp()), DDP(nn.Sequential(Block(), nn.Linear(WIDTH, 1)).cuda())
    optimizers = [torch.optim.Adam(model.parameters()) for model in (generator, discriminator)]
    for _ in range(STEPS):
        fake = generator(data())
        (discriminator(fake.detach()).mean() - discriminator.module(data()).mean()).backward()
        optimizers[1].step()
        discriminator.requires_grad_(False)
        (-discriminator(fake).mean()).backward()
        discriminator.requires_grad_(True)
        optimizers[0].step()
        for optimizer in optimizers:
            optimizer.zero_grad()


@program
def accumulation():
    """Gradients are reduced at every second batch only."""
    model = DDP(mlp())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for step in range(2 * STEPS):
        with model.no_sync() if step % 2 == 0 else contextlib.nullcontext():
            model(data()).square().mean().backward()
        if step % 2:
            optimizer.step()
            optimizer.zero_grad()


@program
def fsdp():
    model = mlp()
    policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    for block in model:
        fully_shard(block, mp_policy=policy)
    train(fully_shard(model, mp_policy=policy), optimizer=torch.optim.AdamW)


@program
def hybrid_sharding():
    """Sharded in pairs of ranks, replicated among the pairs."""
    mesh = init_device_mesh("cuda", (dist.get_world_size() // 2, 2), mesh_dim_names=("replicate", "shard"))
    model = mlp()
    for block in model:
        fully_shard(block, mesh=mesh)
    train(fully_shard(model, mesh=mesh))


def seeded_data():
    return torch.randn(BATCH, WIDTH).cuda()     # ranks that share a tensor have to draw the same


@program
def tensor_parallel():
    mesh = init_device_mesh("cuda", (dist.get_world_size(),))
    model = mlp()
    for block in model:
        parallelize_module(block, mesh, {"up": ColwiseParallel(), "down": RowwiseParallel()})
    train(model, seeded_data)


@program
def sequence_parallel():
    """Tensor parallel, with the layer norms split along the sequence."""
    mesh = init_device_mesh("cuda", (dist.get_world_size(),))
    model = mlp()
    for block in model:
        parallelize_module(block, mesh, {
            "norm": SequenceParallel(), "up": ColwiseParallel(input_layouts=Shard(1)),
            "down": RowwiseParallel(output_layouts=Shard(1), use_local_output=True)})
    parallelize_module(model, mesh, PrepareModuleInput(input_layouts=Replicate(), desired_input_layouts=Shard(1),
                                                       use_local_output=True))
    train(model, lambda: torch.randn(BATCH, 8, WIDTH).cuda())


@program
def tensor_and_data_parallel():
    mesh = init_device_mesh("cuda", (dist.get_world_size() // 2, 2), mesh_dim_names=("data", "tensor"))
    model = mlp()
    for block in model:
        parallelize_module(block, mesh["tensor"], {"up": ColwiseParallel(), "down": RowwiseParallel()})
        fully_shard(block, mesh=mesh["data"])
    train(fully_shard(model, mesh=mesh["data"]), seeded_data)


@program
def pipeline():
    """One block a rank; GPipe's schedule, then 1F1B."""
    rank, ranks = dist.get_rank(), dist.get_world_size()
    for schedule_of in (ScheduleGPipe, Schedule1F1B):
        # Shapes are given: to exchange them takes computed values. From PyTorch 2.15 on they say whose gradients are sent back.
        given, made = (torch.empty(1, WIDTH, device="cuda", requires_grad=own) for own in (rank > 0, True))
        stage = PipelineStage(Block().cuda(), rank, ranks, given.device, input_args=(given,), output_args=(made,))
        schedule = schedule_of(stage, n_microbatches=2 * ranks, loss_fn=F.mse_loss)
        batch = torch.randn(2 * ranks, WIDTH).cuda()
        for _ in range(STEPS):
            if rank == 0:
                schedule.step(batch)
            elif rank == ranks - 1:
                schedule.step(target=batch)
            else:
                schedule.step()


@program
def checkpoint():
    """A sharded model is saved by all ranks, and loaded into another."""
    saved, loaded = fully_shard(mlp()), fully_shard(mlp())
    path = os.path.join(tempfile.gettempdir(), "ddpcheck-checkpoint-" + os.environ["MASTER_PORT"])
    dcp.save(train(saved).state_dict(), checkpoint_id=path)
    state = loaded.state_dict()
    dcp.load(state, checkpoint_id=path)
    loaded.load_state_dict(state)
    dist.barrier()
    if dist.get_rank() == 0:
        shutil.rmtree(path)


def compiled():
    """torch.compile makes kernels with Triton, which takes a while. Not one of the ways: it is started by its name."""
    layer = DDP(nn.Linear(WIDTH, WIDTH).cuda())
    train(layer)
    scaled = torch.compile(lambda x: torch.relu(x * 2 + 1))(layer.module(data()).detach())
    dist.all_reduce(scaled)


def main():
    rank = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(rank)
    dist.init_process_group("nccl", device_id=torch.device("cuda", rank))
    groups = {"ways": PROGRAMS, "examples": EXAMPLES}
    chosen = sys.argv[1:] or groups
    for name in [one for group in chosen for one in groups.get(group, [group])]:
        torch.manual_seed(0)
        {**PROGRAMS, **EXAMPLES, "compiled": compiled}[name]()
        torch.cuda.synchronize()
        if rank == 0:
            print("done:", name, flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
