"""A full disk: the collector says so once, keeps the records in the rings, and stores them all once there is room.
Needs a small tmpfs, so root; without it the test is skipped."""

import os
import re
import signal
import subprocess
import sys
import tempfile

from tool import EVENT_QUERY, Trace, stop, wait_until


def main():
    mount = tempfile.mkdtemp(prefix="ddpcheck-small-")
    if os.geteuid() != 0 or subprocess.run(["mount", "-t", "tmpfs", "-o", "size=3m", "none", mount], capture_output=True).returncode:
        os.rmdir(mount)
        print("skipped: can't mount a tmpfs")
        sys.exit(77)
    try:
        with Trace(sys.argv[1], "full", parent=mount) as trace:
            ballast = os.path.join(mount, "ballast")
            trace.start_producer(1, 1, 12000, "pause=1000")
            collector = trace.start_collector()
            wait_until(lambda: trace.databases() and trace.query("SELECT 1 FROM event LIMIT 1"), 20, "the first record")
            with open(ballast, "wb", buffering=0) as file:
                try:
                    while True:
                        file.write(bytes(65536))
                except OSError:
                    pass
            # The producer waits for room in its ring, so it does not end while nothing can be stored.
            await_line(collector, "no space left")
            assert 0 < trace.journal(1)[0] < 12000
            assert collector.poll() is None, collector.stderr.read()
            # Ended while full, and another started: still nothing lost.
            stop(collector, signal.SIGTERM)
            os.unlink(ballast)
            subprocess.run(["mount", "-o", "remount,size=64m", mount], check=True)
            collector = trace.start_collector()
            trace.producers[0][0].wait(timeout=300)
            assert collector.wait(timeout=300) == 0, collector.stderr.read()
            assert trace.check_complete() == 12000
            # And one that stays through it.
            trace.start_producer(2, 1, 20000, "pause=1000")
            collector = trace.start_collector()
            wait_until(lambda: trace.journal(2)[0] > 100, 20, "the second producer's start")
            leave_free(mount, 256)
            await_line(collector, "no space left")
            before = trace.journal(2)[0]
            subprocess.run(["mount", "-o", "remount,size=64m", mount], check=True)
            trace.producers[1][0].wait(timeout=300)
            assert collector.wait(timeout=300) == 0
            said = collector.stderr.read()
            assert before < 20000 and "no space left" not in said and "takes records again" in said, (before, said)
            assert trace.check_complete() == 32000
        ends_while_full(mount)
        ends_while_full(mount)
        hangs_while_full(mount)
    finally:
        subprocess.run(["umount", "-l", mount])
        os.rmdir(mount)
    print("full twice: nothing lost")


def await_line(collector, words):
    """What the collector writes until then is read; ctest ends the test if it never comes."""
    for line in collector.stderr:
        if words in line:
            return
    raise AssertionError("the collector ended without %r" % words)


def ends_while_full(mount):
    """A job that ends before there is room again: `ddpcheck run` does not wait for it, says what is stored and what is not,
    and the next collector stores the rest."""
    subprocess.run(["mount", "-o", "remount,size=64m", mount], check=True)
    with Trace(sys.argv[1], "ends", parent=mount) as trace:
        os.makedirs(trace.rings(), mode=0o700, exist_ok=True)
        journal = os.path.join(trace.folder, "journal-7")
        run = subprocess.Popen([trace.tool, "run", "-o", trace.path, "--", trace.producer_program, trace.rings(), journal, "1", "10000", "7",
                                "lossy", "pause=1000"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        wait_until(lambda: trace.databases() and trace.query("SELECT 1 FROM event LIMIT 1"), 30, "the first record")
        leave_free(mount, 128)
        said, _ = run.communicate(timeout=120)
        assert run.returncode == 0, said
        assert said.count("was full: ") == 1 and "processes of the job still run" not in said and "no NCCL call" not in said, said
        stored, unstored = map(int, re.search(r"(\d+) records are stored, (\d+) are not", said).groups())
        assert stored > 0 and unstored > 0, said
        assert trace.query("SELECT count(*) FROM event")[0][0] == stored, said
        subprocess.run(["mount", "-o", "remount,size=64m", mount], check=True)
        done = trace.collect()
        assert done.returncode == 0, done.stderr
        indexes = [row[0] for row in trace.query("SELECT w1 FROM event WHERE api = ? ORDER BY seq", EVENT_QUERY)]
        assert len(indexes) > stored and indexes == sorted(set(indexes)), (stored, unstored, len(indexes))
        assert trace.query("SELECT value FROM meta WHERE key = 'ended'"), done.stderr


def hangs_while_full(mount):
    """A job that stops making progress meanwhile: --timeout ends it, although nothing of it can be stored; not before that."""
    subprocess.run(["mount", "-o", "remount,size=64m", mount], check=True)
    with Trace(sys.argv[1], "hangs", parent=mount) as trace:
        os.makedirs(trace.rings(), mode=0o700, exist_ok=True)
        program = "%s %s %s 1 8000 8 lossy pause=1000; echo done; sleep 1000" % (
            trace.producer_program, trace.rings(), os.path.join(trace.folder, "journal-8"))
        run = subprocess.Popen([trace.tool, "run", "--timeout", "3", "-o", trace.path, "--", "sh", "-c", program],
                               stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        wait_until(lambda: trace.databases() and trace.query("SELECT 1 FROM event LIMIT 1"), 30, "the first record")
        leave_free(mount, 128)
        said, _ = run.communicate(timeout=120)
        assert run.returncode == 143 and "no progress for 3 s" in said, (run.returncode, said)
        assert said.index("\ndone\n") < said.index("ddpcheck: no progress for"), said


def leave_free(mount, kib):
    """From now on only so much is free. The job writes meanwhile, and a size below what it has written is refused."""
    while subprocess.run(["mount", "-o", "remount,size=%dk" % (used(mount) + kib), mount], capture_output=True).returncode:
        pass


def used(mount):
    status = os.statvfs(mount)
    return (status.f_blocks - status.f_bfree) * status.f_frsize // 1024


if __name__ == "__main__":
    main()
