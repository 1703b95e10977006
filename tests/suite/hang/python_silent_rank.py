"""Rank 0 is stuck in a lock of its own; it holds no call of CUDA or NCCL. Its Python stack says where.

expect: DC201 possible ranks=0
ends: hang
"""
import os
import sys
import threading

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import suite


def save_checkpoint():
    lock = threading.Lock()
    lock.acquire()
    if not suite.TWIN:
        lock.acquire()


def train(me):
    gradients = me.floats(100)
    for step in range(3):
        suite.nccl.ncclAllReduce(gradients, gradients, 100, suite.FLOAT32, suite.SUM, me.comm, me.stream)
        suite.cuda.cudaStreamSynchronize(me.stream)
        if step == 1 and me.rank == 0:
            save_checkpoint()


suite.start(train, ranks=2)
