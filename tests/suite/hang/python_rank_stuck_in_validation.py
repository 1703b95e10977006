"""Rank 1 waits for a file of validation data that nobody writes, while the others go on to the next step.

The finding's place is where rank 1 is now.

expect: DC201 possible ranks=1 place=here
ends: hang
hang-after: 1
"""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import suite


def validate(reader):
    return os.read(reader, 1)  # here


def train(me):
    gradients = me.floats(1000)
    reader, writer = os.pipe()
    for step in range(4):
        if step == 2 and me.rank == 1:
            if suite.TWIN:
                os.write(writer, b"x")
            validate(reader)
        suite.nccl.ncclAllReduce(gradients, gradients, 1000, suite.FLOAT32, suite.SUM, me.comm, me.stream)
        suite.cuda.cudaStreamSynchronize(me.stream)


suite.start(train, ranks=4)
