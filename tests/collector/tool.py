"""A trace directory, its collector and producers (producer.c), and what must be in the database afterwards."""

import os
import shutil
import signal
import sqlite3
import struct
import subprocess
import sys
import tempfile
import time

MASK = (1 << 64) - 1
EVENT_QUERY = 116       # API_cudaEventQuery, what producers record
NOTICE_LOST, NOTICE_END, NOTICE_PROGRESS, NOTICE_TICK = 262, 261, 260, 263


def mix(x):
    """splitmix64, as in producer.c."""
    x = (x + 0x9E3779B97F4A7C15) & MASK
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & MASK
    return x ^ (x >> 31)


def signed(x, bits=64):
    x &= (1 << bits) - 1
    return x - (1 << bits) if x >> (bits - 1) else x


def expected_row(seed, thread, index):
    """(thread, result, device, stack, stream, w0..w9) of a producer's record."""
    state = mix((mix(seed) + (thread << 40) + index) & MASK)
    words = [thread, index] + [signed(mix((state + 10 + i) & MASK)) for i in range(2, 10)]
    return (mix(state + 1 & MASK) & 0xFFFFFFFF, signed(mix(state + 2 & MASK), 32), signed(mix(state + 3 & MASK), 16),
            signed(mix(state + 4 & MASK)), signed(mix(state + 5 & MASK)), *words)


class Trace:
    def __init__(self, build, name, parent=None):
        self.tool = os.path.join(os.path.abspath(build), "bin", "ddpcheck")
        self.producer_program = os.path.join(os.path.abspath(build), "tests", "collector_producer")
        self.folder = tempfile.mkdtemp(prefix="ddpcheck-collector-" + name + "-", dir=parent)
        self.path = os.path.join(self.folder, "trace")
        self.collectors, self.producers = [], []
        # Makes the directory and says where rings go; what it runs is nothing to record.
        subprocess.run([self.tool, "run", "-q", "-o", self.path, "--", "true"], capture_output=True, timeout=90)
        done = self.collect()
        assert done.returncode == 0, done.stderr

    def __enter__(self):
        return self

    def __exit__(self, kind, value, traceback):
        for process in self.collectors + [p for p, _ in self.producers]:
            if process.poll() is None:
                process.kill()
                process.wait()
        shutil.rmtree(self.rings(), ignore_errors=True)
        if kind is None:
            shutil.rmtree(self.folder, ignore_errors=True)
        else:
            print("kept for a look: " + self.folder, file=sys.stderr)

    def rings(self):
        with open(os.path.join(self.path, "rings")) as file:
            return file.read().strip()

    def collect(self, *options, timeout=90):
        return subprocess.run([self.tool, "collect", *options, self.path], capture_output=True, text=True, timeout=timeout)

    def start_collector(self, *options):
        process = subprocess.Popen([self.tool, "collect", *options, self.path], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                                   text=True)
        self.collectors.append(process)
        return process

    def start_producer(self, seed, threads=2, records=1000, *options):
        os.makedirs(self.rings(), mode=0o700, exist_ok=True)
        journal = os.path.join(self.folder, "journal-%d" % seed)
        process = subprocess.Popen([self.producer_program, self.rings(), journal, str(threads), str(records), str(seed), *options])
        self.producers.append((process, seed))
        # A collector started next must find it: without any producer it would end at once.
        wait_until(lambda: process.poll() is not None or self.ring_of(process), 30, "the producer's ring file")
        return process

    def ring_of(self, process):
        try:
            names = os.listdir(self.rings())
        except FileNotFoundError:       # a collector that just ended has removed it
            return None
        return next((name for name in names if name.startswith("%d-" % process.pid)), None)

    def journal(self, seed):
        """How many records each thread had appended."""
        try:
            with open(os.path.join(self.folder, "journal-%d" % seed), "rb") as file:
                return struct.unpack("16Q", file.read(128))
        except (FileNotFoundError, struct.error):
            return (0,) * 16

    def databases(self):
        found = [os.path.join(self.path, name) for name in os.listdir(self.path) if name.endswith(".db")]
        old = os.path.join(self.path, "old")
        if os.path.isdir(old):
            found += [os.path.join(old, name) for name in os.listdir(old) if name.endswith(".db")]
        return found

    def query(self, sql, *values):
        rows = []
        for path in self.databases():
            connection = sqlite3.connect("file:" + path + "?mode=ro", uri=True, timeout=120)
            try:
                rows += connection.execute(sql, values).fetchall()
            except sqlite3.OperationalError as error:
                if "no such table" not in str(error):   # its tables are not there yet
                    raise
            connection.close()
        return rows

    def check_complete(self, lossy=False):
        """Every record that a producer's journal counts is there, once, bit by bit. Returns how many there are."""
        total = 0
        for process, seed in self.producers:
            counted = self.journal(seed)
            rows = self.query("SELECT e.thread, e.result, e.device, e.stack, e.stream, w0, w1, w2, w3, w4, w5, w6, w7, w8, w9 FROM event e "
                              "JOIN process p ON p.id = e.process WHERE e.api = ? AND p.pid = ?", EVENT_QUERY, process.pid)
            for row in rows:
                want = expected_row(seed, row[5], row[6])
                assert row == want, "producer %d: stored %s, recorded %s" % (process.pid, row, want)
            places = [(row[5], row[6]) for row in rows]
            assert len(set(places)) == len(places), "producer %d: %d rows, %d distinct" % (process.pid, len(places), len(set(places)))
            if not lossy:
                for thread, count in enumerate(counted):
                    have = {index for t, index in places if t == thread}
                    missing = set(range(count)) - have
                    assert not missing, "producer %d thread %d: %d of %d records missing: %s" % (
                        process.pid, thread, len(missing), count, sorted(missing)[:5])
                    assert len(have) <= count + 1, "producer %d thread %d: %d rows for %d records" % (process.pid, thread, len(have), count)
            total += len(rows)
        return total


def stop(process, how=signal.SIGKILL, timeout=120):
    """Ends a process; returns its status."""
    if process.poll() is None:
        process.send_signal(how)
    return process.wait(timeout=timeout)


def wait_until(condition, timeout=120, what="it"):
    end = time.monotonic() + timeout
    while not condition():
        assert time.monotonic() < end, what + " did not happen in %d s" % timeout
        time.sleep(0.02)
