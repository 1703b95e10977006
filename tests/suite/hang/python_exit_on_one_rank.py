"""Rank 1 finds that a file is missing and calls sys.exit(2).

expect: DC205 certain ranks=1 place=read_shard
says: exited with status 2
ends: hang
"""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import suite


def read_shard(rank):
    if rank == 1 and not suite.TWIN:
        sys.exit(2)


def train(me):
    gradients = me.floats(100)
    read_shard(me.rank)
    suite.nccl.ncclAllReduce(gradients, gradients, 100, suite.FLOAT32, suite.SUM, me.comm, me.stream)
    suite.cuda.cudaStreamSynchronize(me.stream)


suite.start(train, ranks=2)
