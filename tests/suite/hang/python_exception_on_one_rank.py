"""Rank 2 raises an exception that nobody catches; its process ends with status 1.

expect: DC205 certain ranks=2
ends: hang
"""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import suite


def load_batch(me, step):
    images = [0.5] * 8
    return images[9] if me.rank == 2 and step == 2 and not suite.TWIN else images[step]


def train(me):
    gradients = me.floats(100)
    for step in range(4):
        load_batch(me, step)
        suite.nccl.ncclAllReduce(gradients, gradients, 100, suite.FLOAT32, suite.SUM, me.comm, me.stream)
        suite.cuda.cudaStreamSynchronize(me.stream)


suite.start(train, ranks=3)
