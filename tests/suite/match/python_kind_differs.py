"""Rank 1 takes the branch of evaluation, which broadcasts where the others reduce.

expect: DC101 certain ranks=1 place=evaluate
ends: hang
"""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import suite


def evaluate(me, metrics):
    suite.nccl.ncclBroadcast(metrics, metrics, 1000, suite.FLOAT32, 0, me.comm, me.stream)


def reduce(me, gradients):
    suite.nccl.ncclAllReduce(gradients, gradients, 1000, suite.FLOAT32, suite.SUM, me.comm, me.stream)


def train(me):
    values = me.floats(1000)
    evaluating = me.rank == 1 and not suite.TWIN
    (evaluate if evaluating else reduce)(me, values)
    suite.cuda.cudaStreamSynchronize(me.stream)


suite.start(train, ranks=3)
