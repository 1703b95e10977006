"""Writes real Flight Recorder dumps, as PyTorch's watchdog does when a job hangs: OUTPUT/CASE/nccl_trace_rank_N.

dumps.py OUTPUT BACKEND CASE...; BACKEND gloo or nccl (with a GPU for each rank, or the emulated libraries preloaded).
Ranks are forked from one process, so that PyTorch is imported once. The last of RANKS ranks is the odd one. A second
process group holds ranks 0 and 2 only. gloo knows no size and dtype: it ends a process that gets more than it expects. With `.json` behind the case's name the dumps are JSON instead of pickles."""

import ctypes
import datetime
import faulthandler
import os
import pickle
import signal
import sys
import time
import traceback

os.environ.setdefault("TORCH_FR_BUFFER_SIZE", "2000")
os.environ.setdefault("OMP_NUM_THREADS", "1")

import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402
import torch._inductor.standalone_compile  # noqa: E402, F401 (a dump with stacks imports it: once here, not in each rank)
from torch._C import _distributed_c10d as c10d  # noqa: E402

RANKS, ODD, STEPS = 3, 2, 4


def train_step(device, pair, works):
    works.append(dist.all_reduce(torch.empty(1000, device=device), async_op=True))
    works.append(dist.broadcast(torch.empty(7, dtype=torch.int64, device=device), 0, async_op=True))
    if pair is not None and dist.get_rank() in (0, ODD):
        works.append(dist.all_gather([torch.empty(4, device=device) for _ in range(2)], torch.empty(4, device=device),
                                     group=pair, async_op=True))


def clean(odd, device):
    return [dist.all_reduce(torch.empty(500, device=device), async_op=True)]


def skip(odd, device):
    """One all_reduce left out; the next call is another one, so that the kinds differ from there."""
    works = [] if odd else clean(odd, device)
    return works + [dist.broadcast(torch.empty(9, device=device), 1, async_op=True)]


def size(odd, device):
    return [dist.all_reduce(torch.empty(501 if odd else 500, device=device), async_op=True)]


def dtype(odd, device):
    return [dist.all_reduce(torch.empty(500, dtype=torch.float16 if odd else torch.float32, device=device), async_op=True)]


def behind(odd, device):
    """The odd rank does something else and never comes."""
    return [] if odd else clean(odd, device)


def clean_kinds(odd, device):
    """Every kind of call, coalesced ones and messages among them."""
    rank, ranks = dist.get_rank(), dist.get_world_size()

    def tensor(elements):
        return torch.empty(elements, device=device)

    def one_each():
        return [tensor(5) for _ in range(ranks)] if rank == 0 else None

    works = dist.batch_isend_irecv([dist.P2POp(dist.isend, tensor(64), (rank + 1) % ranks),
                                    dist.P2POp(dist.irecv, tensor(64), (rank - 1) % ranks)])
    with dist._coalescing_manager(device=torch.device(device), async_ops=True) as coalesced:
        for elements in (8, 16, 32):
            dist.all_gather_into_tensor(tensor(elements * ranks), tensor(elements))
    works += coalesced.works
    works.append(dist.reduce_scatter_tensor(tensor(10), tensor(10 * ranks), async_op=True))
    works.append(dist.all_to_all_single(tensor(9), tensor(9), async_op=True))
    works.append(dist.barrier(async_op=True))
    works.append(dist.gather(tensor(5), one_each(), async_op=True))
    works.append(dist.scatter(tensor(5), one_each(), async_op=True))
    if rank < 2:
        works.append((dist.irecv if rank else dist.isend)(tensor(100), 1 - rank))
    works.append(dist.reduce(tensor(3), 1, async_op=True))
    works.append(dist.all_gather([tensor(k + 1) for k in range(ranks)], tensor(rank + 1), async_op=True))     # uneven: broadcasts
    return works


def behind_kinds(odd, device):
    return [] if odd else clean_kinds(odd, device)


CASES = {function.__name__: function for function in (clean, skip, size, dtype, behind, clean_kinds, behind_kinds)}


def dump_of(backend, suffix=""):
    """Since 2.15 each backend has its recorder by its name, and "nccl" is the backend nccl2."""
    is_old = tuple(int(part) for part in torch.__version__.split(".")[:2]) < (2, 15)
    if backend == "nccl" and is_old:
        return getattr(c10d, "_dump_nccl_trace" + suffix)()
    return getattr(c10d, "_dump_fr_trace" + suffix)(**({"backend": "nccl2"} if backend == "nccl" else {}))


def wait(works, seconds=200):
    deadline = time.monotonic() + seconds
    while not all(work.is_completed() for work in works) and time.monotonic() < deadline:
        time.sleep(0.01)


def wait_for_watchdog(seconds=200):
    """Until PyTorch's watchdog has seen that all is over: from then on the dump says so."""
    deadline = time.monotonic() + seconds
    while any(entry["state"] != "completed" for entry in pickle.loads(dump_of("nccl"))["entries"]):
        assert time.monotonic() < deadline, "the watchdog has not seen the end of what has ended"
        time.sleep(0.1)


def meet(store, name):
    """All ranks are here: nobody dumps before all have issued what they will issue."""
    store.add(name, 1)
    while int(store.add(name, 0)) < RANKS:
        time.sleep(0.01)


def rank_main(rank, port, backend, case, folder):
    device = "cuda" if backend == "nccl" else "cpu"
    faulthandler.dump_traceback_later(240, exit=True)       # whatever happens, nobody stays
    if device == "cuda":
        torch.cuda.set_device(rank % torch.cuda.device_count())
    store = dist.TCPStore("127.0.0.1", port, RANKS, False, timeout=datetime.timedelta(seconds=200))
    dist.init_process_group(backend, store=store, rank=rank, world_size=RANKS, timeout=datetime.timedelta(seconds=300))
    pair, works = dist.new_group([0, ODD], group_desc="pair"), []
    for _ in range(STEPS):
        train_step(device, pair, works)
    wait(works)
    last = CASES[case.removesuffix(".json")](rank == ODD, device)
    meet(store, "issued")
    if case.startswith("clean"):
        wait(last)
        if device == "cuda":
            wait_for_watchdog()
    dump = dump_of(backend, "_json" if case.endswith(".json") else "")
    with open(os.path.join(folder, "nccl_trace_rank_%d" % rank), "wb") as file:
        file.write(dump if isinstance(dump, bytes) else dump.encode())
    meet(store, "dumped")
    os._exit(0)                     # what hangs is not torn down


def serve_store():
    """Starts the store in a process of its own, which ends with this one. Returns its port.

    A store has threads, and a process that forks while it has threads copies the locks that they hold just then: a rank
    that is forked beside them can wait for such a lock for ever. So whoever forks the ranks has no threads."""
    port_read, port_write = os.pipe()
    if os.fork() == 0:
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)      # PR_SET_PDEATHSIG
        server = dist.TCPStore("127.0.0.1", 0, RANKS, True, wait_for_workers=False)
        os.write(port_write, b"%d" % server.port)
        os.close(port_write)
        while True:
            signal.pause()
    os.close(port_write)
    with open(port_read) as file:
        return int(file.read())


def run(backend, case, folder):
    os.makedirs(folder, exist_ok=True)
    port = serve_store()
    threads = len(os.listdir("/proc/self/task"))
    assert threads == 1, "%d threads before ranks are forked" % threads
    children = []
    for rank in range(RANKS):
        child = os.fork()
        if child == 0:
            try:
                rank_main(rank, port, backend, case, folder)
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(1)
        children.append(child)
    statuses = {}
    while len(statuses) < RANKS:
        child, status = os.wait()
        if child not in children:
            sys.exit("%s: the store ended with status %d" % (case, status))
        statuses[child] = status
        if status:                  # the others would wait for it
            for other in set(children) - set(statuses):
                os.kill(other, signal.SIGKILL)
    return [statuses[child] for child in children]


def main():
    output, backend, cases = sys.argv[1], sys.argv[2], sys.argv[3:]
    for case in cases:
        statuses = run(backend, case, os.path.join(output, case))
        if any(statuses):
            sys.exit("%s: the ranks ended with %s" % (case, statuses))


if __name__ == "__main__":
    main()
