"""What `ddpcheck collect` does with well-behaved producers: everything once, ends told, files cleaned up, a second job
in a database of its own."""

import os
import signal
import sys
import time

from tool import NOTICE_END, NOTICE_LOST, NOTICE_PROGRESS, NOTICE_TICK, Trace, stop, wait_until


def meta(trace, key):
    return [value for value, in trace.query("SELECT value FROM meta WHERE key = ?", key)]


def several_processes(build):
    with Trace(build, "several") as trace:
        producers = [trace.start_producer(seed, 3, 2000, "exit=%d" % seed, "slots") for seed in (1, 2, 3)]
        collector = trace.start_collector()
        for process in producers:
            process.wait(timeout=300)
        assert collector.wait(timeout=300) == 0, collector.stderr.read()
        assert [name for name in os.listdir(trace.path) if "-wal" in name or "-shm" in name] == []
        assert trace.check_complete() == 3 * 3 * 2000
        ends = trace.query("SELECT p.rank, e.w0 & 4294967295, e.w0 >> 32 FROM event e JOIN process p ON p.id = e.process WHERE api = ?", NOTICE_END)
        # The test's own interpreter reaps them, perhaps before the collector asks: then the kernel (6.15 and later) still knows.
        assert sorted(rank for rank, _, _ in ends) == [1, 2, 3], ends
        assert all((how, value) == (0, rank) for rank, how, value in ends if how != 2), ends
        assert trace.query("SELECT DISTINCT started, done FROM v_progress") == [(7, 5)]
        assert meta(trace, "ended") != [] and not os.path.exists(trace.rings())
        serials = trace.query("SELECT process, serial FROM event WHERE serial > 0 ORDER BY seq")
        for process in (0, 1, 2):
            own = [serial for p, serial in serials if p == process]
            late = sum(1 for before, after in zip(own, own[1:]) if after < before)
            assert sorted(own) == list(range(1, 6001)) and late <= 60, "process %d: %d records out of order" % (process, late)


def overflow_is_counted(build):
    with Trace(build, "overflow") as trace:
        process = trace.start_producer(7, 2, 50000, "lossy")
        process.wait(timeout=300)
        done = trace.collect()
        assert done.returncode == 0, done.stderr
        rows = trace.check_complete(lossy=True)
        lost = trace.query("SELECT max(w0 + w1) FROM event WHERE api = ?", NOTICE_LOST)[0][0]
        assert lost > 0 and rows + lost == 100000, (rows, lost)


def time_passes(build):
    with Trace(build, "ticks") as trace:
        trace.start_producer(9, 1, 100, "slots", "pause=400000")
        collector = trace.start_collector()
        wait_until(lambda: trace.databases() and trace.query("SELECT 1 FROM event WHERE api = ?", NOTICE_TICK), 20, "a tick")
        collector.send_signal(signal.SIGTERM)
        assert collector.wait(timeout=120) == 0
        assert meta(trace, "ended") == [], "the producer lives: the trace is not over"
        stop(trace.producers[0][0])
        assert trace.collect().returncode == 0
        assert meta(trace, "ended") != []
        assert trace.query("SELECT w0 & 4294967295, w0 >> 32 FROM event WHERE api = ?", NOTICE_END)[0] in ((1, 9), (2, 0))
        trace.check_complete()


def second_job(build):
    with Trace(build, "second") as trace:
        for seed in (1, 2):
            trace.start_producer(seed, 1, 150).wait(timeout=300)
            assert trace.collect().returncode == 0
        assert len(trace.databases()) == 2 and len(os.listdir(os.path.join(trace.path, "old"))) == 1
        assert trace.check_complete() == 300
        done = trace.collect()      # nothing new: the last run stays where it is
        assert done.returncode == 0 and "are stored already; report: ddpcheck report " + trace.path in done.stderr, done.stderr
        assert len([name for name in os.listdir(trace.path) if name.endswith(".db")]) == 1


def one_at_a_time(build):
    with Trace(build, "lock") as trace:
        trace.start_producer(1, 1, 200, "pause=200000")
        first = trace.start_collector()
        wait_until(lambda: trace.databases() != [], 20, "the first collector")
        second = trace.collect()
        assert second.returncode == 0 and "process %d already collects" % first.pid in second.stderr, second.stderr
        daemon = trace.collect("--daemon")
        assert daemon.returncode == 0 and daemon.stderr == "", daemon.stderr
        stop(trace.producers[0][0])
        assert first.wait(timeout=120) == 0
        trace.check_complete()


def daemon(build):
    with Trace(build, "daemon") as trace:
        assert trace.collect("--daemon").returncode == 0
        trace.start_producer(4, 2, 1000).wait(timeout=300)
        wait_until(lambda: trace.databases() and meta(trace, "ended"), 30, "the daemon's end")
        assert trace.check_complete() == 2000
        with open(os.path.join(trace.path, "collector.log")) as log:
            assert log.read() == ""


def main():
    for check in (several_processes, overflow_is_counted, time_passes, second_job, one_at_a_time, daemon):
        check(sys.argv[1])
        print("ok", check.__name__)


if __name__ == "__main__":
    main()
