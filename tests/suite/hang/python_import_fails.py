"""Rank 1 fails in an import, before it has called CUDA or NCCL; the other waits in ncclCommInitRank for it.

expect: DC209 certain ranks=1 place=read_images
says: after an exception (ModuleNotFoundError: No module named 'image_reader_of_rank_1')
fix: what raised the exception
ends: hang
"""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import suite


def read_images(rank):
    if rank == 1 and not suite.TWIN:
        import image_reader_of_rank_1  # noqa: F401


def train(me):
    gradients = me.floats(100)
    suite.nccl.ncclAllReduce(gradients, gradients, 100, suite.FLOAT32, suite.SUM, me.comm, me.stream)


suite.start(train, ranks=2, first=read_images)
