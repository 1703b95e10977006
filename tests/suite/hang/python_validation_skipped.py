"""Rank 1 has no data for validation and leaves its reduction out. The flag of the next step is matched with it, and so on.

expect: DC206|DC201 certain ranks=0
origin: rank 1 left out one call (or rank 0 made one more) at #6 .. it was at all_reduce() called at .. rank 0 at validate() called at
ends: hang
"""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import suite

STEPS = 4


def all_reduce(me, data):
    suite.nccl.ncclAllReduce(data, data, 1, suite.FLOAT32, suite.SUM, me.comm, me.stream)
    suite.cuda.cudaStreamSynchronize(me.stream)


def validate(me, score):
    all_reduce(me, score)


def train(me):
    score = me.floats(1)
    for step in range(STEPS):
        all_reduce(me, score)
        all_reduce(me, score)
        if suite.TWIN or me.rank == 0 or step != 1:
            validate(me, score)
        all_reduce(me, score)


suite.start(train, ranks=2)
