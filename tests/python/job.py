"""A training loop without tensors: NCCL and CUDA through ctypes, one process per rank (as vLLM's pynccl calls them).

job.py WHAT [RANKS]: what rank 2 (or the last) does instead of its fourth step; `nothing`: all go on to the end."""

import asyncio
import ctypes
import os
import sys
import threading
import time

FLOAT32, SUM, NON_BLOCKING, ID_BYTES = 7, 0, 1, 128
WHAT = sys.argv[1]
RANKS = int(sys.argv[2]) if len(sys.argv) > 2 else 4
STEPS = 120 if WHAT == "late" else 6


class UniqueId(ctypes.Structure):
    _fields_ = [("bytes", ctypes.c_char * ID_BYTES)]


class Rank:
    def __init__(self, rank, unique, library=ctypes.CDLL):
        self.rank = rank
        self.nccl, self.cuda = library("libnccl.so.2"), library("libcudart.so.13")
        self.comm, self.stream, self.gradients = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
        self.check(self.cuda.cudaSetDevice(rank))
        self.check(self.cuda.cudaStreamCreateWithFlags(ctypes.byref(self.stream), NON_BLOCKING))
        self.check(self.cuda.cudaMalloc(ctypes.byref(self.gradients), ctypes.c_size_t(4000)))
        self.check(self.cuda.cudaMemset(self.gradients, 0, ctypes.c_size_t(4000)))
        self.check(self.cuda.cudaDeviceSynchronize())
        self.check(self.nccl.ncclCommInitRank(ctypes.byref(self.comm), RANKS, unique, rank))

    @staticmethod
    def check(result):
        if result:
            sys.exit("call failed with %d" % result)

    def all_reduce(self, count=1000):
        self.check(self.nccl.ncclAllReduce(self.gradients, self.gradients, ctypes.c_size_t(count), FLOAT32, SUM, self.comm, self.stream))  # all_reduce

    def synchronize(self):
        self.check(self.cuda.cudaStreamSynchronize(self.stream))    # synchronize


def evaluate():
    if WHAT == "sleep":
        time.sleep(600)                     # stuck
    elif WHAT == "loop":
        while True:
            pass                            # stuck
    elif WHAT == "read":
        os.read(os.pipe()[0], 1)            # stuck
    elif WHAT == "lock":
        lock = threading.Lock()
        lock.acquire()
        lock.acquire()                      # stuck
    elif WHAT == "gil-sleep":
        ctypes.PyDLL(None).sleep(600)       # stuck
    elif WHAT == "gil-read":
        ctypes.PyDLL(None).read(os.pipe()[0], ctypes.create_string_buffer(1), ctypes.c_size_t(1))   # stuck
    elif WHAT == "gil-loop":
        sys.setswitchinterval(1000)
        while True:
            pass                            # stuck
    elif WHAT == "async":
        asyncio.run(validate())
    elif WHAT == "daemons":
        for _ in range(8):
            threading.Thread(target=all_reduce_for_ever, daemon=True).start()


def all_reduce_for_ever():
    """Makes calls while the interpreter is torn down around it."""
    cuda, stream = ctypes.CDLL("libcudart.so.13"), ctypes.c_void_p()
    cuda.cudaSetDevice(0)
    while True:
        cuda.cudaStreamSynchronize(stream)


async def validate():
    await asyncio.sleep(600)                # not on the stack while the loop waits


def churn(seconds):
    """Threads that come and go, stacks that grow and shrink, generators, exceptions, code made and thrown away."""
    def dig(depth):
        return dig(depth - 1) + 1 if depth else sum(number for number in range(3))

    def short_life(number):
        try:
            exec(compile("x = %d\ndig(%d)" % (number, number % 50), "<made %d>" % number, "exec"), {"dig": dig})
            if number % 7 == 0:
                raise ValueError(number)
        except ValueError:
            pass

    end, number = time.monotonic() + seconds, 0
    while time.monotonic() < end:
        threads = [threading.Thread(target=short_life, args=(number + i,)) for i in range(8)]
        for thread in threads:
            thread.start()
        dig(number % 60)
        for thread in threads:
            thread.join()
        number += 8


def await_asker():
    with open(os.environ["DDPCHECK_TEST_ROUNDS"], "rb") as file:
        while file.read(4) == bytes(4):
            file.seek(0)
            time.sleep(0.01)


def load_batches(leave):
    leave.wait()                            # loader


def write_samples(me):
    if WHAT == "late" and me.rank == RANKS - 1:
        time.sleep(0.02)


def train_step(me):
    write_samples(me)                       # write_samples
    me.all_reduce(500 if WHAT == "half" and me.rank == RANKS - 1 else 1000)
    me.synchronize()


def train(me):
    leave = threading.Event()
    loader = threading.Thread(target=load_batches, args=(leave,), name="loader", daemon=True)
    loader.start()
    if WHAT == "churn":
        await_asker()
    for step in range(STEPS):
        if step == 3 and me.rank == min(2, RANKS - 1):
            evaluate()
        if WHAT == "churn":
            churn(0.35)
        train_step(me)
    leave.set()
    loader.join()
    me.check(me.nccl.ncclCommDestroy(me.comm))


def run_rank(rank, pipes):
    os.environ.update(RANK=str(rank), WORLD_SIZE=str(RANKS))
    unique = UniqueId()
    if rank == 0:
        ctypes.CDLL("libnccl.so.2").ncclGetUniqueId(ctypes.byref(unique))
        for _, end in pipes[1:]:
            os.write(end, bytes(unique))
    else:
        unique = UniqueId.from_buffer_copy(os.read(pipes[rank][0], ID_BYTES))
    train(Rank(rank, unique, ctypes.PyDLL if WHAT == "held" else ctypes.CDLL))


def main():
    pipes = [os.pipe() for _ in range(RANKS)]
    for rank in range(RANKS):
        if os.fork() == 0:
            ctypes.CDLL(None).prctl(1, 9, 0, 0, 0)      # PR_SET_PDEATHSIG, SIGKILL
            run_rank(rank, pipes)
            sys.exit(0)
    sys.exit(1 if any([os.wait()[1] for _ in range(RANKS)]) else 0)


main()
