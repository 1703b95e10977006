"""Rank 1 recovers from an exception, and from a sys.exit() that a function calls meanwhile; later it ends by another sys.exit().

expect: DC205 certain ranks=1 place=give_up
says: exited with status 3
ends: hang
"""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import suite


def recover(me):
    try:
        raise ValueError("recovered long ago")
    except ValueError:
        try:
            sys.exit(3)
        except SystemExit:
            pass


def give_up(me):
    if me.rank == 1 and not suite.TWIN:
        sys.exit(3)


def train(me):
    gradients = me.floats(100)
    for step in (recover, give_up, None):
        suite.nccl.ncclAllReduce(gradients, gradients, 100, suite.FLOAT32, suite.SUM, me.comm, me.stream)
        suite.cuda.cudaStreamSynchronize(me.stream)
        if step:
            step(me)


suite.start(train, ranks=2)
