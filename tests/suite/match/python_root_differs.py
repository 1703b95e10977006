"""Each rank broadcasts its own weights, because the root was taken from the rank.

expect: DC105 certain ranks=0+1 place=here
ends: hang
"""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import suite


def train(me):
    weights = me.floats(1000)
    root = 0 if suite.TWIN else me.rank
    suite.nccl.ncclBroadcast(weights, weights, 1000, suite.FLOAT32, root, me.comm, me.stream)  # here
    suite.cuda.cudaStreamSynchronize(me.stream)


suite.start(train, ranks=2)
