"""SIGKILL of producers and of the collector at random moments, more than 100 times: every record that was in a ring
before is in the database afterwards, exactly once, bit by bit."""

import os
import random
import sys
import threading
import time

from tool import Trace, stop

JOBS, KILLS_EACH = 3, 36


def job(build, number, results):
    source = random.Random(number)
    kills = 0
    with Trace(build, "kills") as trace:
        seed = 1000 * (number + 1)
        collector = trace.start_collector()
        while kills < KILLS_EACH:
            running = [p for p, _ in trace.producers if p.poll() is None]
            while len(running) < 3:
                seed += 1
                running.append(trace.start_producer(seed, source.randint(1, 3), 20000, "pause=2000"))
            if collector.poll() is not None:
                collector = trace.start_collector()
            time.sleep(source.uniform(0, 0.12))
            victim = source.random()
            if victim < 0.5:
                stop(collector)
            elif victim < 0.8:
                stop(source.choice(running))
            else:
                for process in running:
                    stop(process)
            kills += 1
        for process, _ in trace.producers:
            stop(process)
        stop(collector)
        for _ in range(3):      # once is enough, unless the killed one left two jobs' files
            done = trace.collect()
            assert done.returncode == 0, done.stderr
        left = [name for name in os.listdir(trace.rings())] if os.path.isdir(trace.rings()) else []
        assert not left, "left in the ring directory: %s" % left
        results.append((kills, trace.check_complete(), len(trace.producers)))


def main():
    results, failures = [], []

    def guarded(number):
        try:
            job(sys.argv[1], number, results)
        except BaseException as failure:
            failures.append(failure)
            raise

    threads = [threading.Thread(target=guarded, args=(number,)) for number in range(JOBS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    kills, records, producers = (sum(column) for column in zip(*results))
    assert kills >= 100 and records > 1000, results
    print("%d kills, %d producers, %d records: none lost, none doubled" % (kills, producers, records))


if __name__ == "__main__":
    main()
