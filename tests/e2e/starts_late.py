"""Rank 1 comes late to the first NCCL call, or hangs and does not listen to SIGTERM: a program for test_timeout.py.

starts_late.py computes|loads|idles|traps: one process per rank, as torchrun starts them, without a variable that numbers them."""

import os
import signal
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "suite"))
import suite

LATE_S = 7
HOW = sys.argv.pop(1)


def load(file):
    """From storage, not from what is kept of it in memory."""
    os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    os.pread(file.fileno(), 4096, 0)
    time.sleep(0.2)


def come_late():
    file = tempfile.TemporaryFile(dir=os.environ["DDPCHECK_DIR"])
    file.write(bytes(1 << 20))
    os.fsync(file.fileno())
    end = time.monotonic() + LATE_S
    while time.monotonic() < end:
        if HOW == "computes":
            sum(range(1000))
        elif HOW == "loads":
            load(file)
        else:
            time.sleep(0.01)


def reduce(me):
    """Handlers of Python do not run while its rank is in the call; this one is of no use either."""
    values = me.floats(1000)
    suite.nccl.ncclAllReduce(values, values, 1000, suite.FLOAT32, suite.SUM, me.comm, me.stream)
    if HOW == "traps" and me.rank == 1:
        while True:
            time.sleep(1)
    if HOW == "traps":
        suite.nccl.ncclAllReduce(values, values, 1000, suite.FLOAT32, suite.SUM, me.comm, me.stream)
    suite.cuda.cudaStreamSynchronize(me.stream)


def main():
    pipes = [os.pipe() for _ in range(2)]
    children = []
    for rank in range(2):
        child = os.fork()
        if child == 0:
            if HOW == "traps":
                signal.signal(signal.SIGTERM, signal.SIG_IGN)
            elif rank == 1:
                come_late()
            suite.run_rank(reduce, rank, 2, pipes)
            os._exit(0)
        children.append(child)
    sys.exit(max(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children))


main()
