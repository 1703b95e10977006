"""The collector and a process that it records are in different PID namespaces, as in two containers that share /dev/shm and the
trace directory: the process counts as running as long as it runs. Needs unshare; without it the test is skipped."""

import os
import signal
import subprocess
import sys
import time

from tool import EVENT_QUERY, NOTICE_END, Trace, wait_until

RECORDS, THREADS = 1500, 2
APART = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"]


def start_producer(trace, seed, prefix, *options):
    os.makedirs(trace.rings(), mode=0o700, exist_ok=True)
    journal = os.path.join(trace.folder, "journal-%d" % seed)
    process = subprocess.Popen([*prefix, trace.producer_program, trace.rings(), journal, str(THREADS), str(RECORDS), str(seed),
                                "pause=20000", *options])
    trace.producers.append((process, seed))
    wait_until(lambda: process.poll() is not None or os.listdir(trace.rings()), 30, "the producer's ring file")
    return process


def start_collector(trace, prefix):
    process = subprocess.Popen([*prefix, trace.tool, "collect", trace.path], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    trace.collectors.append(process)
    return process


def stored(trace):
    return trace.query("SELECT count(*), count(DISTINCT w0 * 1000000 + w1) FROM event WHERE api = ?", EVENT_QUERY)


def all_is_stored(build, producer_apart, collector_apart, *options):
    with Trace(build, "apart") as trace:
        producer = start_producer(trace, 5, APART if producer_apart else [], "exit=3", *options)
        collector = start_collector(trace, APART if collector_apart else [])
        assert producer.wait(timeout=300) == 3
        assert collector.wait(timeout=300) == 0, collector.stderr.read()
        assert stored(trace) == [(THREADS * RECORDS,) * 2], stored(trace)
        assert len(trace.query("SELECT 1 FROM event WHERE api = ?", NOTICE_END)) == 1
        assert trace.query("SELECT 1 FROM meta WHERE key = 'ended'") and not os.path.exists(trace.rings())


def inside(unshare):
    """The program that unshare --fork runs."""
    with open("/proc/%d/task/%d/children" % (unshare.pid, unshare.pid), encoding="ascii") as file:
        return int(file.read().split()[0])


def a_kill_is_noticed(build):
    with Trace(build, "killed") as trace:
        producer = start_producer(trace, 6, APART)
        collector = start_collector(trace, APART)
        wait_until(lambda: trace.databases() and stored(trace) and stored(trace)[0][0] > 50, 60, "records")
        before = time.monotonic()
        os.kill(inside(producer), signal.SIGKILL)
        wait_until(lambda: trace.query("SELECT 1 FROM event WHERE api = ?", NOTICE_END), 30, "the end")
        assert collector.wait(timeout=300) == 0, collector.stderr.read()
        assert stored(trace)[0][0] >= sum(trace.journal(6)), (stored(trace), trace.journal(6))
        print("  the end was known after %.1f s" % (time.monotonic() - before))


def main():
    if subprocess.run([*APART, "true"], capture_output=True).returncode:
        print("skipped: unshare --pid is not permitted here")
        sys.exit(77)
    build = sys.argv[1]
    all_is_stored(build, True, False)       # the kernel translates the pid
    print("ok producer in a container")
    all_is_stored(build, False, True)       # nobody there has a pid for it
    print("ok collector in a container")
    all_is_stored(build, True, True)
    print("ok both in containers of their own")
    all_is_stored(build, False, True, "closed")
    print("ok no lock: the file is in use")
    a_kill_is_noticed(build)
    print("ok a kill is noticed")


if __name__ == "__main__":
    main()
