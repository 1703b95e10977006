"""Rank 1 recovers from a sys.exit() that a function calls; later it ends by os._exit() with the same status.

expect: DC205 certain ranks=1 place=end_all
says: exited with status 1
ends: hang
"""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import suite


def recover(me):
    try:
        sys.exit(1)
    except SystemExit:
        pass


def end_all(me):
    if me.rank == 1 and not suite.TWIN:
        os._exit(1)


def train(me):
    gradients = me.floats(100)
    for step in (recover, end_all, None):
        suite.nccl.ncclAllReduce(gradients, gradients, 100, suite.FLOAT32, suite.SUM, me.comm, me.stream)
        suite.cuda.cudaStreamSynchronize(me.stream)
        if step:
            step(me)


suite.start(train, ranks=2)
