"""Rank 0 keeps its loss in double precision.

expect: DC103 certain ranks=0 place=here
ends: hang
"""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import suite

FLOAT64 = 8


class Trainer:
    def average_loss(self, me, loss):
        kind = FLOAT64 if me.rank == 0 and not suite.TWIN else suite.FLOAT32
        suite.nccl.ncclAllReduce(loss, loss, 1, kind, suite.SUM, me.comm, me.stream)  # here


def train(me):
    Trainer().average_loss(me, me.floats(2))
    suite.cuda.cudaStreamSynchronize(me.stream)


suite.start(train, ranks=2)
