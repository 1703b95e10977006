"""Rank 1 reduces half of its gradients, from Python.

expect: DC102 certain ranks=1
ends: hang
"""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import suite


def train(me):
    gradients = me.floats(1000)
    count = 1000 if suite.TWIN or me.rank == 0 else 500
    suite.nccl.ncclAllReduce(gradients, gradients, count, suite.FLOAT32, suite.SUM, me.comm, me.stream)  # here
    suite.cuda.cudaStreamSynchronize(me.stream)


suite.start(train, ranks=2)
