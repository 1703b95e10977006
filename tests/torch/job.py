"""Small DistributedDataParallel jobs, each a few lines: a training step that is right, and what goes wrong in the field.

torchrun --nproc_per_node N job.py CASE: on NCCL where there is a GPU, a real one or emulated (ranks share it where there
are fewer), else on gloo. The last rank is the odd one. scenarios.md's rows stand beside the cases; `-twin` is the same
done right. The models multiply and add element by element, which is fast to start. train.py has larger programs."""

import contextlib
import datetime
import os
import signal
import sys
import time

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch.cuda import nvtx
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, TensorDataset

GPU, DEVICE = False, "cpu"      # main() looks: a process that has looked can't fork ranks that use the GPU
STEPS = 6
CASES = {}


def case(function):
    CASES[function.__name__.replace("_", "-")] = function
    return function


class Scale(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight, self.bias = torch.nn.Parameter(torch.ones(width)), torch.nn.Parameter(torch.zeros(width))

    def forward(self, x):
        return x * self.weight + self.bias


class Halves(torch.nn.Module):
    """Its second half goes unused where the caller wishes so."""

    def __init__(self):
        super().__init__()
        self.first, self.second = Scale(16), Scale(16)

    def forward(self, x, whole=True):
        return self.second(F.relu(self.first(x))) if whole else F.relu(self.first(x))


def is_odd():
    return dist.get_rank() == dist.get_world_size() - 1


def wrap(model, **options):
    return DDP(model.to(DEVICE), **options)


def optimizer_of(model):
    return torch.optim.SGD(model.parameters(), lr=0.01)


def batch(step=0, width=16):
    return torch.randn(8, width, generator=torch.Generator().manual_seed(100 * step + dist.get_rank())).to(DEVICE)


def train(model, steps=STEPS, **arguments):
    optimizer = optimizer_of(model)
    for step in range(steps):
        with nvtx.range("iteration %d" % step):
            model(batch(step), **arguments).square().mean().backward()
            optimizer.step()
            optimizer.zero_grad()


@case
def clean():
    """Training with loader processes, a metric over all ranks, a checkpoint that only rank 0 writes."""
    model = wrap(Halves())
    images = TensorDataset(torch.arange(96.).reshape(-1, 16) / 96)
    optimizer = optimizer_of(model)
    for step, (images_of_step,) in enumerate(DataLoader(images, batch_size=2, num_workers=2, multiprocessing_context="fork")):
        loss = model(images_of_step.to(DEVICE)).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    total = loss.detach().clone()
    dist.all_reduce(total)
    dist.barrier()
    if dist.get_rank() == 0:
        print("step %d: loss %.6f over %d ranks" % (step, total.item() / dist.get_world_size(), dist.get_world_size()), flush=True)


@case
def restart():
    """The odd rank dies once; the launcher starts all again (torchrun --max_restarts 1)."""
    model = wrap(Halves())
    train(model, 2)
    if is_odd() and os.environ["TORCHELASTIC_RESTART_COUNT"] == "0":
        os._exit(3)
    clean()


@case
def inplace_activation():       # row 1
    hidden = wrap(Halves())(batch()).sigmoid()
    F.relu_(hidden)             # sigmoid's backward needs what it had written there
    hidden.sum().backward()


@case
def inplace_activation_twin():
    F.relu(wrap(Halves())(batch()).sigmoid()).sum().backward()


def reduce_loss(skips):
    """One number and a barrier look the same to NCCL: what is left out shows at the barrier only."""
    train(wrap(Halves()))
    if not (skips and is_odd()):
        dist.all_reduce(torch.ones(1, device=DEVICE))
    dist.barrier()


def accumulate(odd_too):
    """The odd rank reduces gradients that the others only accumulate."""
    model = wrap(Halves())
    for step in range(STEPS):
        with model.no_sync() if step == 1 and (odd_too or not is_odd()) else contextlib.nullcontext():
            model(batch(step)).square().mean().backward()


@case
def no_sync_differs():
    accumulate(False)


@case
def no_sync_differs_twin():
    accumulate(True)


@case
def scalar_skipped():
    reduce_loss(True)
    finish_late()


@case
def scalar_skipped_twin():
    reduce_loss(False)


def all_reduce_mean(value):
    dist.all_reduce(value)
    return value / dist.get_world_size()


def mean_of_losses(with_validation):
    """A helper named after what it does makes all calls; the branch is beside it."""
    model = wrap(Halves())
    train(model)
    if with_validation:
        all_reduce_mean(torch.ones(1, device=DEVICE))
    all_reduce_mean(model(batch()).detach())


@case
def mean_by_helper():
    mean_of_losses(is_odd())
    finish_late()


@case
def mean_by_helper_twin():
    mean_of_losses(True)


@case
def partial_barrier():          # row 5
    train(wrap(Halves()))
    if not is_odd():
        dist.barrier()
    finish_late()


@case
def partial_barrier_twin():
    train(wrap(Halves()))
    dist.barrier()


@case
def skip():
    """A rank that leaves one collective out, and goes on to the next."""
    train(wrap(Halves()))
    if not is_odd():
        dist.all_reduce(torch.ones(1000, device=DEVICE))
    dist.all_gather([torch.empty(4, device=DEVICE) for _ in range(dist.get_world_size())], torch.ones(4, device=DEVICE))


def divide(wait):
    """An average by hand: the sum of all ranks, then a division by their number."""
    total = torch.ones(1 << 16, device=DEVICE)
    work = dist.all_reduce(total, async_op=True)
    if wait:
        work.wait()
    total.div_(dist.get_world_size())
    work.wait()


@case
def divided_too_early():
    divide(False)


@case
def divided_too_early_twin():
    divide(True)


def use(read):
    """Works on the tensors of running collectives: the input of an all_gather may be read, a result may not."""
    total, gathered = torch.ones(1 << 16, device=DEVICE), torch.empty(dist.get_world_size() << 16, device=DEVICE)
    work = dist.all_reduce(total, async_op=True) if read else dist.all_gather_into_tensor(gathered, total, async_op=True)
    scaled = total * 2
    if not read:
        read_in_lists(total)
    work.wait()
    return scaled.sum(), gathered.sum()


def read_in_lists(tensor):
    """Kernels that work on lists of tensors, and one that gets its tensor as a struct: none writes its input."""
    other = torch.ones_like(tensor)
    torch.cat([other, tensor]), torch._foreach_add([tensor, other], 1.0), torch._foreach_norm([tensor, other])
    torch.topk(tensor, 4), tensor.view(-1, 16)[torch.arange(8, device=DEVICE)]
    torch._foreach_mul_([other], 2.0)


@case
def read_too_early():
    use(True)


@case
def read_too_early_twin():
    use(False)


def update(wait):
    """Gradients are reduced one by one; then the optimizer reads them."""
    model = Scale(1 << 16).to(DEVICE)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    model(batch(width=1 << 16)).square().mean().backward()
    works = [dist.all_reduce(parameter.grad, async_op=True) for parameter in model.parameters()]
    for work in works if wait else []:
        work.wait()
    optimizer.step()
    for work in works:
        work.wait()


@case
def stepped_too_early():
    update(False)


@case
def stepped_too_early_twin():
    update(True)


def clear(wait):
    """A part of a buffer is reduced while all of it is set to zero."""
    buffer = torch.ones(1 << 16, device=DEVICE)
    work = dist.all_reduce(buffer[1000:2000], async_op=True)
    if wait:
        work.wait()
    buffer.zero_()
    work.wait()


@case
def cleared_too_early():
    clear(False)


@case
def cleared_too_early_twin():
    clear(True)


def pass_on(first):
    """Each rank sends to the next. A first message creates the communicator of its two ranks, in which both have to come."""
    rank, ranks = dist.get_rank(), dist.get_world_size()
    if rank == 0 and not first:
        dist.recv(torch.empty(1000, device=DEVICE), ranks - 1)
    dist.send(torch.ones(1000, device=DEVICE), (rank + 1) % ranks)
    if rank or first:
        dist.recv(torch.empty(1000, device=DEVICE), (rank - 1) % ranks)


@case
def ring():
    pass_on(True)


@case
def shape():
    train(wrap(Halves()))
    dist.all_reduce(torch.ones(1001 if is_odd() else 1000, device=DEVICE))


@case
def uneven_inputs():            # row 11
    model = wrap(Halves())
    train(model, STEPS - 1 if is_odd() else STEPS)
    finish_late()


@case
def uneven_inputs_twin():
    model = wrap(Halves())
    with model.join():
        train(model, STEPS - 1 if is_odd() else STEPS)


def two_models(groups, odd_order):
    """Two models with a process group each, or one for both; the odd rank may do their backward passes in another order."""
    models = [(wrap(Scale(width), process_group=group), width) for width, group in zip((16, 64), groups)]
    for step in range(STEPS):
        with nvtx.range("iteration %d" % step):
            losses = [model(batch(step, width)).square().mean() for model, width in models]
            for loss in reversed(losses) if odd_order and is_odd() and step == STEPS - 1 else losses:
                loss.backward()


@case
def shared_comm():              # row 15
    two_models([None, None], True)


@case
def shared_comm_twin():
    two_models([None, None], False)


@case
def comm_order():               # row 16
    two_models([dist.new_group(), dist.new_group()], True)


@case
def comm_order_twin():
    two_models([dist.new_group(), dist.new_group()], False)


def skip_model(skip):
    """A GAN's generator is left out in a step in which its loss is small: a value of this rank."""
    models = [wrap(Scale(width)) for width in (16, 64)]
    for step in range(2):       # of more, DC504 says that the rank began a round early
        for model, width in zip(models, (16, 64)):
            if not (skip and is_odd() and step and width == 16):
                model(batch(step, width)).square().mean().backward()


@case
def skipped_model():
    skip_model(True)


@case
def skipped_model_twin():
    skip_model(False)


def pass_around(receive):
    rank, ranks = dist.get_rank(), dist.get_world_size()
    works = [dist.P2POp(dist.isend, torch.ones(8, device=DEVICE), (rank + 1) % ranks)]
    if receive:
        works.append(dist.P2POp(dist.irecv, torch.empty(8, device=DEVICE), (rank - 1) % ranks))
    for work in dist.batch_isend_irecv(works):
        work.wait()
    dist.barrier()


@case
def no_receive():
    dist.barrier()
    pass_around(not is_odd())


@case
def no_receive_twin():
    dist.barrier()
    pass_around(True)


@case
def object_lists():
    dist.broadcast_object_list(["lr", "epochs"] if is_odd() else ["lr", "epochs", "name"])


@case
def object_lists_twin():
    dist.broadcast_object_list(["lr", "epochs", "name"])


class Layers(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.ModuleList(Scale(16) for _ in range(3))

    def forward(self, x, skipped):
        for layer in self.layers:
            x = x if skipped and layer is self.layers[1] else layer(x)
        return x


def sharded(skip):
    """FSDP2, whose hooks make the calls of backward, in autograd's threads."""
    from torch.distributed.fsdp import fully_shard
    model = Layers().to(DEVICE)
    for layer in model.layers:
        fully_shard(layer)
    fully_shard(model)
    for step in range(2):
        loss = model(batch(step), skip and is_odd() and step == 1).square().mean()
        loss.backward()
    torch.cuda.synchronize()


@case
def sharded_layers():
    sharded(True)


@case
def sharded_layers_twin():
    sharded(False)


def two_groups(odd_too):
    """A group of all but the odd rank, then one of all. Every rank has to call new_group for each."""
    ranks = list(range(dist.get_world_size()))
    dist.all_reduce(torch.ones(4, device=DEVICE))
    if odd_too or not is_odd():
        most = dist.new_group(ranks[:-1])
        if not is_odd():
            dist.all_reduce(torch.ones(4, device=DEVICE), group=most)
    dist.all_reduce(torch.ones(4, device=DEVICE), group=dist.new_group(ranks))


@case
def group_by_members():
    two_groups(False)


@case
def group_by_members_twin():
    two_groups(True)


@case
def unused_params():            # row 18
    model = wrap(Halves())
    train(model, 3)
    train(model, 3, whole=not is_odd())


@case
def unused_params_twin():
    model = wrap(Halves(), find_unused_parameters=True)
    train(model, 3)
    train(model, 3, whole=not is_odd())


def train_with_little_memory(take_part):
    """One batch is too large for the odd rank."""
    model = wrap(Halves())
    optimizer = optimizer_of(model)
    for step in range(STEPS):
        with nvtx.range("iteration %d" % step):
            try:
                loss = model(batch(step)).square().mean()
                if is_odd() and step == STEPS // 2:
                    raise torch.cuda.OutOfMemoryError("CUDA out of memory (made up)")
                loss.backward()
            except torch.cuda.OutOfMemoryError:
                if take_part:
                    (loss * 0).backward()   # with zeros, as its peers wait for it
            optimizer.step()
            optimizer.zero_grad()


@case
def oom_skip():                 # row 19
    train_with_little_memory(False)
    finish_late()


@case
def oom_skip_twin():
    train_with_little_memory(True)


def train_and_fail():
    train(wrap(Halves()))
    if is_odd():
        raise ValueError("a sample is broken")
    dist.barrier()


@case
def raised():
    train_and_fail()


@case
def raised_in_try():
    try:
        train_and_fail()
    finally:
        dist.destroy_process_group()


@case
def raised_in_except():
    """Cleans up in the handler, then lets the exception go on."""
    try:
        train_and_fail()
    except ValueError:
        dist.destroy_process_group()
        raise


@case
def stopped():
    """Somebody pressed Ctrl-Z, or a debugger has it."""
    train(wrap(Halves()))
    if is_odd():
        os.kill(os.getpid(), signal.SIGSTOP)
    dist.barrier()


@case
def busy():
    """Rank 1 prepares data until a file appears, and comes then."""
    train(wrap(Halves()))
    while is_odd() and not os.path.exists(os.environ["DDPCHECK_TEST_GO"]):
        sum(range(1000))
    dist.barrier()


@case
def raised_then_exit():
    """As torch.multiprocessing.spawn's children do."""
    try:
        train_and_fail()
    except ValueError:
        sys.exit(1)


def leave_early():
    if is_odd():
        sys.exit(0)


@case
def returned_early():
    train(wrap(Halves()))
    leave_early()
    dist.barrier()


@case
def fell_off():
    """Its program is over, without destroy_process_group(): the interpreter frees the process group."""
    train(wrap(Halves()))
    dist.all_reduce(torch.ones(1, device=DEVICE))
    if not is_odd():
        dist.barrier()
        torch.cuda.synchronize()
        dist.destroy_process_group()


def refuse_arguments():
    if is_odd():
        sys.exit(4)


@case
def exit_status():
    """The communicator is NCCL's to end: Python shuts down, and has forgotten where it was told to."""
    train(wrap(Halves()))
    refuse_arguments()
    dist.barrier()


def read_data():
    if is_odd():
        raise ValueError("a bad input file")


@case
def raised_before_first():
    """Before its first call of NCCL: its peers wait in the set-up of the communicator."""
    read_data()
    dist.barrier()


def reduce_metric():
    dist.all_reduce(torch.ones(1, device="cpu" if is_odd() else DEVICE))


@case
def raised_in_first():
    """NCCL's backend refuses a tensor of the CPU."""
    reduce_metric()


def leave_at_once():
    if is_odd():
        os._exit(3)


@case
def exit_quick():
    train(wrap(Halves()))
    leave_at_once()
    dist.barrier()


@case
def raised_then_exit_quick():
    try:
        train_and_fail()
    except ValueError:
        os._exit(1)


@case
def guarded():
    """Under --guard one of the two calls is an exception, whose text names the other; without the guard both wait."""
    x = torch.ones(8, device=DEVICE)
    dist.all_reduce(x)
    try:
        dist.all_reduce(x) if is_odd() else dist.broadcast(x, 0)
        print("went on", flush=True)
    except RuntimeError as error:       # of 2.10 a DistBackendError
        print("refused: %s" % error, flush=True)
    os._exit(0)


# These end as Python ends: the cases above are about nothing else.
ENDINGS = ("exit-status", "raised-before-first", "raised-in-first", "exit-quick", "raised-then-exit-quick",
           "fell-off", "raised", "raised-in-try", "raised-in-except", "raised-then-exit", "returned-early")


@case
def twins():
    """All of them in one job, but for join(), which reads what the ranks add up: the emulated GPU adds nothing."""
    for name in sorted(CASES):
        if name.endswith("-twin") and name != "uneven-inputs-twin":
            CASES[name]()


def finish_late():
    """The odd rank lives on, as one that reads data or writes a checkpoint, so that its peers wait and do not see it end."""
    if is_odd() and GPU:
        time.sleep(600)


def main():
    global GPU, DEVICE
    name = sys.argv[1]
    if torch.cuda.is_available():
        GPU, DEVICE = True, "cuda"
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]) % torch.cuda.device_count())
    dist.init_process_group("nccl" if GPU else "gloo",
                            timeout=datetime.timedelta(seconds=float(os.environ.get("DDPCHECK_TEST_TIMEOUT", "60"))))
    torch.manual_seed(0)
    CASES[name]()
    if name == "fell-off":
        return
    if GPU:
        torch.cuda.synchronize()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
