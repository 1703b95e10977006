"""A data loader with one batch more on rank 1.

expect: DC206 certain ranks=1
ends: hang
"""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import suite


def batches(me):
    return range(4 if suite.TWIN else 4 + me.rank)


def train(me):
    gradients = me.floats(5000)
    for _ in batches(me):
        suite.nccl.ncclAllReduce(gradients, gradients, 5000, suite.FLOAT32, suite.SUM, me.comm, me.stream)
        suite.cuda.cudaStreamSynchronize(me.stream)


suite.start(train, ranks=2)
