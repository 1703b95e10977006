"""A loop as Python writes it: buckets in a list, a scalar loss, and a rank that prints more slowly than the others.

expect: none
"""
import os
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import suite


def train(me):
    buckets = [me.floats(1000 * (i + 1)) for i in range(3)]
    loss = me.floats(1)
    for step in range(5):
        for i, bucket in enumerate(buckets):
            suite.nccl.ncclAllReduce(bucket, bucket, 1000 * (i + 1), suite.FLOAT32, suite.SUM, me.comm, me.stream)
        suite.nccl.ncclAllReduce(loss, loss, 1, suite.FLOAT32, suite.SUM, me.comm, me.stream)
        suite.cuda.cudaStreamSynchronize(me.stream)
        if me.rank == 0:
            time.sleep(0.05)


suite.start(train, ranks=4)
