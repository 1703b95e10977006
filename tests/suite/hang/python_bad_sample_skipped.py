"""Rank 1 catches the exception of a bad sample, prints it and leaves the step out. All later steps are matched with the wrong
ones, until it has no more.

expect: DC206|DC201 certain ranks=0
origin: rank 1 caught an exception (ValueError: a bad sample) before #4 .. read_sample()
ends: hang
"""
import os
import sys
import traceback

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import suite

STEPS = 5


def read_sample(me, step):
    if not suite.TWIN and me.rank == 1 and step == 2:
        raise ValueError("a bad sample")


def reduce_gradients(me, data):
    suite.nccl.ncclAllReduce(data, data, 1, suite.FLOAT32, suite.SUM, me.comm, me.stream)
    suite.nccl.ncclAllReduce(data, data, 1, suite.FLOAT32, suite.SUM, me.comm, me.stream)
    suite.cuda.cudaStreamSynchronize(me.stream)


def train(me):
    data = me.floats(1)
    for step in range(STEPS):
        try:
            read_sample(me, step)
        except ValueError:
            traceback.print_exc()
            continue
        reduce_gradients(me, data)


suite.start(train, ranks=2)
