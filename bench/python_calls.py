"""ns per call of cudaStreamSynchronize made below Python frames: "NS NAME" lines. Argument: the library with the loop."""

import ctypes
import statistics
import sys
import time

BURST, BURSTS, REST_S = 512, 60, 0.004


def below(depth, function):
    return below(depth - 1, function) if depth > 1 else function()


def measure(turn):
    figures = []
    for _ in range(BURSTS):
        figures.append(turn(BURST))
        time.sleep(REST_S)      # the collector empties the rings
    return statistics.median(figures)


def main():
    loops = {}
    for name, kind in ("GIL released", ctypes.CDLL), ("GIL held", ctypes.PyDLL):
        loops[name] = kind(sys.argv[1]).synchronize_ns
        loops[name].restype = ctypes.c_double
    comm, device = ctypes.c_void_p(), ctypes.c_int(0)
    assert ctypes.CDLL("libnccl.so.2").ncclCommInitAll(ctypes.byref(comm), 1, ctypes.byref(device)) == 0
    for frames in 4, 16, 28:
        for name, turn in loops.items():
            # main, <module> and measure are frames as well
            print("%.1f %d Python frames, %s" % (below(frames - 3, lambda: measure(turn)), frames, name))


main()
