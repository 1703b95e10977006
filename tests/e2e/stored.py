"""Waits until a collector that the job itself started has stored everything."""

import fcntl
import glob
import os
import time


def _ring_files(trace):
    try:
        with open(os.path.join(trace, "rings"), encoding="utf-8") as file:
            return os.listdir(file.read().strip())
    except FileNotFoundError:
        return []


def _is_held(lock):
    with open(lock, "a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            return False
        except BlockingIOError:
            return True


def wait_stored(trace, timeout=300):
    """A job's ring files are there from its first call until its records are stored; the collector's lock is held only once
    the collector runs, which may be after the end of a short job."""
    end = time.monotonic() + timeout
    while _ring_files(trace) or any(map(_is_held, glob.glob(os.path.join(trace, "collector*.lock")))):
        assert time.monotonic() < end, "the collector of %s has not ended in %d s; ring files left: %s" % (trace, timeout, _ring_files(trace))
        time.sleep(0.05)
