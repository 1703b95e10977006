"""Small programs of the kinds that PyTorch's examples have, for several GPUs: all are correct. train.py runs them."""

import copy
import math

import torch
import torch.distributed as dist
import torch.distributed.nn.functional as through
import torch.nn as nn
import torch.nn.functional as F
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks, powerSGD_hook
from torch.distributed.algorithms.join import Join
from torch.distributed.fsdp import FullyShardedDataParallel
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.distributed.pipelining import PipelineStage, ScheduleInterleaved1F1B
from torch.distributions import Categorical
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn
from torch.utils.checkpoint import checkpoint
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

WIDTH, STEPS, BATCH = 16, 3, 4
EXAMPLES = {}


def example(function):
    EXAMPLES[function.__name__.replace("_", "-")] = function
    return function


def data(*shape):
    return torch.randn(*(shape or (BATCH, WIDTH)), device="cuda")


def layers(count=2):
    return nn.Sequential(*[nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.ReLU()) for _ in range(count)]).cuda()


@example
def mnist():
    """Digits: loader, dropout, evaluation, and a metric of all ranks."""
    images = TensorDataset(torch.randn(32, 1, 12, 12), torch.randint(10, (32,)))
    sampler = DistributedSampler(images)
    loader = DataLoader(images, batch_size=BATCH, sampler=sampler, num_workers=1, pin_memory=True)
    model = DDP(nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Dropout(0.25), nn.Flatten(),
                              nn.Linear(100, 10), nn.LogSoftmax(1)).cuda())
    optimizer = torch.optim.Adadelta(model.parameters())
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 1, 0.7)
    for epoch in range(2):
        sampler.set_epoch(epoch)
        for image, digit in loader:
            optimizer.zero_grad()
            F.nll_loss(model(image.cuda(non_blocking=True)), digit.cuda(non_blocking=True)).backward()
            optimizer.step()
        schedule.step()
        model.eval()
        with torch.no_grad():
            right = sum((model(image.cuda()).argmax(1) == digit.cuda()).sum() for image, digit in loader)
        dist.all_reduce(right)
        model.train()
        right.item()


@example
def resnet():
    """A residual network: channels last, batch norm over all ranks, mixed precision, a checkpoint's state."""
    block = nn.Sequential(nn.Conv2d(8, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8), nn.ReLU(True), nn.AdaptiveAvgPool2d(1))
    net = nn.Sequential(nn.Conv2d(3, 8, 7, 2, 3, bias=False), nn.BatchNorm2d(8), block, nn.Flatten(), nn.Linear(8, 10))
    model = DDP(nn.SyncBatchNorm.convert_sync_batchnorm(net).cuda().to(memory_format=torch.channels_last))
    optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9, weight_decay=1e-4, nesterov=True)
    for _ in range(STEPS):
        images = data(BATCH, 3, 16, 16).to(memory_format=torch.channels_last)
        with torch.autocast("cuda"):
            out = model(images)
        optimizer.zero_grad()
        F.cross_entropy(out.float(), torch.randint(10, (BATCH,), device="cuda"), label_smoothing=0.1).backward()
        optimizer.step()
        out.topk(5)[1].tolist()
    state = copy.deepcopy(model.state_dict())
    model.load_state_dict(state)


@example
def variational_autoencoder():
    encoder, decoder = nn.Linear(WIDTH, 8).cuda(), nn.Linear(4, WIDTH).cuda()
    model = DDP(nn.ModuleList([encoder, decoder]))
    model.module.forward = lambda x: _reconstruct(encoder, decoder, x)
    for _ in range(STEPS):
        out, mean, spread = model(data().sigmoid())
        (F.mse_loss(out, data(), reduction="sum") - 0.5 * torch.sum(1 + spread - mean.pow(2) - spread.exp())).backward()


def _reconstruct(encoder, decoder, x):
    mean, spread = encoder(x).chunk(2, -1)
    return torch.sigmoid(decoder(mean + torch.randn_like(spread) * torch.exp(0.5 * spread))), mean, spread


@example
def actor_critic():
    model = DDP(nn.Linear(WIDTH, 3).cuda())
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-2)
    for _ in range(STEPS):
        out = model(data(10, WIDTH))
        policy = Categorical(logits=out[:, :2], validate_args=False)
        action, returns = policy.sample(), torch.linspace(10, 1, 10, device="cuda")
        loss = -(policy.log_prob(action) * (returns - out[:, 2].detach())).sum() + F.smooth_l1_loss(out[:, 2], returns)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    dist.gather(returns, [torch.empty_like(returns) for _ in range(dist.get_world_size())] if dist.get_rank() == 0 else None)


@example
def super_resolution():
    """Orthogonal initialization (linalg.qr) on the GPU, and a pixel shuffle."""
    with torch.device("cuda"):
        net = nn.Sequential(nn.Conv2d(1, 8, 5, padding=2), nn.ReLU(), nn.Conv2d(8, 4, 3, padding=1), nn.PixelShuffle(2))
    for layer in (net[0], net[2]):
        nn.init.orthogonal_(layer.weight)
    model = DDP(net)
    for _ in range(STEPS):
        F.mse_loss(model(data(2, 1, 8, 8)), data(2, 1, 16, 16)).backward()


@example
def style_transfer():
    """Instance norm, reflection, resizing, Gram matrices."""
    model = DDP(nn.Sequential(nn.ReflectionPad2d(1), nn.Conv2d(3, 8, 3), nn.InstanceNorm2d(8, affine=True), nn.ReLU(),
                              nn.Upsample(scale_factor=2), nn.Conv2d(8, 3, 3, padding=1)).cuda())
    for _ in range(STEPS):
        features = model(data(2, 3, 8, 8)).flatten(2)
        features.bmm(features.transpose(1, 2)).sum().backward()


@example
def graph_network():
    """Sparse products, of COO and CSR matrices."""
    edges = torch.randint(20, (2, 60))
    graph = torch.sparse_coo_tensor(edges, torch.ones(60), (20, 20)).coalesce()
    model = DDP(nn.Linear(WIDTH, WIDTH).cuda())
    for matrix in (graph.cuda(), graph.to_dense().to_sparse_csr().cuda()):
        torch.sparse.mm(matrix, model(data(20, WIDTH))).sum().backward()


@example
def translation():
    """Encoder and decoder with masks; packed sequences."""
    model = DDP(nn.Transformer(WIDTH, 2, 1, 1, 2 * WIDTH, batch_first=True).cuda())
    mask = nn.Transformer.generate_square_subsequent_mask(5, device="cuda")
    for _ in range(STEPS):
        model(data(BATCH, 6, WIDTH), data(BATCH, 5, WIDTH), tgt_mask=mask).sum().backward()
    recurrent = DDP(nn.GRU(WIDTH, WIDTH, bidirectional=True).cuda())
    packed = nn.utils.rnn.pack_padded_sequence(data(6, 3, WIDTH), torch.tensor([6, 4, 2]))
    nn.utils.rnn.pad_packed_sequence(recurrent(packed)[0])[0].sum().backward()


@example
def language_model_from_scratch():
    """minGPT: every kind of attention, fused AdamW, unscaled gradients, sampling, an average of the weights."""
    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm, self.attention, self.out = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)

        def forward(self, x):
            q, k, v = (part.unflatten(-1, (2, -1)).transpose(1, 2) for part in self.attention(self.norm(x)).chunk(3, -1))
            return x + self.out(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2))

    model = DDP(nn.Sequential(nn.Embedding(50, WIDTH), Block(), Block(), nn.Linear(WIDTH, 50)).cuda(),
                gradient_as_bucket_view=True, static_graph=True)
    optimizer, scaler = torch.optim.AdamW(model.parameters(), fused=True), torch.amp.GradScaler("cuda")
    average = AveragedModel(model.module, multi_avg_fn=get_ema_multi_avg_fn(0.999))
    for _ in range(STEPS):
        tokens = torch.randint(50, (BATCH, 8), device="cuda")
        with torch.autocast("cuda"):
            loss = F.cross_entropy(model(tokens).flatten(0, 1), tokens.flatten())
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        average.update_parameters(model.module)
    with torch.no_grad():
        torch.multinomial(F.softmax(average.module(tokens)[:, -1], -1), 1)
    for kind in SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH, SDPBackend.CUDNN_ATTENTION:
        q = torch.randn(2, 2, 8, 64, device="cuda", dtype=torch.bfloat16, requires_grad=True)
        with sdpa_kernel(kind):
            F.scaled_dot_product_attention(q, q, q, is_causal=True).sum().backward()


@example
def joined():
    """Uneven inputs: the ranks decide by reduced values who has more batches."""
    model = DDP(layers())
    steps = 0
    with model.join():
        for _ in range(STEPS + dist.get_rank()):
            model(data()).sum().backward()
            steps += 1
    assert steps == STEPS + dist.get_rank()
    model = DDP(layers())
    optimizer = ZeroRedundancyOptimizer(model.parameters(), torch.optim.Adam, lr=0.01)
    with Join([model, optimizer]):
        for _ in range(1 + dist.get_rank()):
            model(data()).sum().backward()
            optimizer.step()


@example
def objects():
    """Python objects through NCCL: their sizes are computed on the GPU."""
    rank, ranks = dist.get_rank(), dist.get_world_size()
    shared = [{"rate": 0.1, "name": "x" * 100}, "end"] if rank == 0 else [None, None]
    dist.broadcast_object_list(shared)
    assert shared[1] == "end", shared
    gathered = [None] * ranks
    dist.all_gather_object(gathered, "y" * (rank + 1))
    assert gathered == ["y" * (one + 1) for one in range(ranks)], gathered
    mine = [None]
    dist.scatter_object_list(mine, [[one] for one in range(ranks)] if rank == 0 else None)
    assert mine == [[rank]], mine


@example
def hooks():
    """Gradients compressed on their way."""
    powers = powerSGD_hook.PowerSGDState(None, matrix_approximation_rank=1, start_powerSGD_iter=2)
    for state, hook in ((None, default_hooks.fp16_compress_hook), (powers, powerSGD_hook.powerSGD_hook)):
        model = DDP(layers())
        model.register_comm_hook(state, hook)
        for _ in range(STEPS):
            model(data()).sum().backward()


@example
def experts():
    """Tokens go to the experts of other ranks and back; groups of two; sends in one batch."""
    rank, ranks = dist.get_rank(), dist.get_world_size()
    gate, expert = layers(1), layers(1)
    for _ in range(STEPS):
        tokens = gate(data(2 * ranks, WIDTH))
        there = through.all_to_all_single(torch.empty_like(tokens), tokens)
        through.all_to_all_single(torch.empty_like(tokens), expert(there)).sum().backward()
    pair, _ = dist.new_subgroups(2)
    dist.all_reduce(data(), group=pair)
    sent, received = data(), torch.empty(BATCH, WIDTH, device="cuda")
    work = dist.batch_isend_irecv([dist.P2POp(dist.isend, sent, (rank + 1) % ranks),
                                   dist.P2POp(dist.irecv, received, (rank - 1) % ranks)])
    for one in work:
        one.wait()


@example
def fsdp_first():
    """The first FullyShardedDataParallel: parameters offloaded, a whole state on rank 0."""
    model = FullyShardedDataParallel(layers(), use_orig_params=True)
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(STEPS):
        model(data()).sum().backward()
        model.clip_grad_norm_(1.0)
        optimizer.step()
        optimizer.zero_grad()
    FullyShardedDataParallel.full_optim_state_dict(model, optimizer)


@example
def recomputed():
    """Activations are computed again in backward."""
    blocks = layers(3)
    model = DDP(blocks)
    blocks.forward = lambda x: _recompute(blocks, x)
    for _ in range(STEPS):
        model(data()).sum().backward()


def _recompute(blocks, x):
    for block in blocks:
        x = checkpoint(block, x, use_reentrant=False)
    return x


@example
def interleaved_pipeline():
    """Two stages a rank, whose shapes the ranks exchange."""
    rank, ranks = dist.get_rank(), dist.get_world_size()
    stages = [PipelineStage(layers(1), rank + ranks * i, 2 * ranks, torch.device("cuda", torch.cuda.current_device())) for i in range(2)]
    schedule = ScheduleInterleaved1F1B(stages, 2 * ranks, loss_fn=F.mse_loss)
    batch = data(2 * ranks, WIDTH)
    for _ in range(STEPS):
        if rank == 0:
            schedule.step(batch)
        elif rank == ranks - 1:
            schedule.step(target=batch, losses=[])
        else:
            schedule.step()


@example
def graphs():
    """A step as a CUDA graph. From PyTorch 2.15 on a capture needs cudaUserObjectCreate, which the emulator lacks."""
    if torch.__version__ >= "2.15":
        return
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        model = DDP(layers())
        optimizer = torch.optim.Adam(model.parameters(), capturable=True)
        batch = data()
        for _ in range(11):     # as DistributedDataParallel asks for
            optimizer.zero_grad(set_to_none=True)
            model(batch).sum().backward()
            optimizer.step()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    optimizer.zero_grad(set_to_none=True)
    with torch.cuda.graph(graph):
        model(batch).sum().backward()
        optimizer.step()
    for _ in range(STEPS):
        batch.copy_(torch.randn(BATCH, WIDTH))
        graph.replay()
    torch.cuda.synchronize()


@example
def other_libraries():
    """What else CUDA brings along: cuSOLVER, cuFFT, cuSPARSE, cuRAND, NVRTC; printed tensors. Of those of PyTorch 2.15 one has a CUDA
    runtime of its own, whose calls the emulator fails."""
    if torch.__version__ >= "2.15":
        return
    matrix = data(5, 5)
    for function in torch.linalg.inv, torch.linalg.qr, torch.linalg.svd, torch.linalg.eigh, torch.linalg.det, torch.linalg.lu_factor:
        function(matrix)
    torch.fft.irfft2(torch.fft.rfft2(data(2, 8, 8)))
    (matrix.to_sparse_csr() @ matrix).sum()
    torch.randperm(10, device="cuda"), torch.bernoulli(matrix.sigmoid())
    torch.special.bessel_j0(matrix)
    torch.cuda.jiterator._create_jit_fn("template <typename T> T twice(T x) { return x + x; }")(matrix)
    assert math.prod(matrix.shape) == 25 and len(str(matrix)) > 25
