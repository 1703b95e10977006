"""The ranks are multiprocessing.Process's: it catches what rank 1 raises, prints it, and exits with status 1.

expect: DC205 certain ranks=1 place=load_batch
says: exited with status 1 after an exception (ValueError: a broken sample)
ends: hang
"""
import multiprocessing
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import suite


def load_batch(me):
    if me.rank == 1 and not suite.TWIN:
        raise ValueError("a broken sample")


def work(me):
    gradients = me.floats(100)
    load_batch(me)
    suite.nccl.ncclAllReduce(gradients, gradients, 100, suite.FLOAT32, suite.SUM, me.comm, me.stream)
    suite.cuda.cudaStreamSynchronize(me.stream)


def train(me):
    status = multiprocessing.get_context("fork").Process(target=work, args=(me,))._bootstrap()     # as its child does
    if status:
        os._exit(status)


suite.start(train, ranks=2)
