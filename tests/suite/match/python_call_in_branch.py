"""Rank 0 logs the loss of each step and gathers it for that; the others do not.

expect: DC101 certain ranks=0 place=here
ends: hang
"""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import suite


def log_loss(me, loss, losses):
    suite.nccl.ncclAllGather(loss, losses, 1, suite.FLOAT32, me.comm, me.stream)  # here


def train(me):
    gradients, loss, losses = me.floats(1000), me.floats(1), me.floats(me.ranks)
    for _ in range(3):
        if suite.TWIN or me.rank == 0:
            log_loss(me, loss, losses)
        suite.nccl.ncclAllReduce(gradients, gradients, 1000, suite.FLOAT32, suite.SUM, me.comm, me.stream)
    suite.cuda.cudaStreamSynchronize(me.stream)


suite.start(train, ranks=2)
