"""A collector that stands still while the job makes far more calls than the rings hold: the beginning and the end are in
the trace, what is between is counted, and the finding about the end is right.

test_newest.py BUILD EMULATOR-LIBRARIES"""

import concurrent.futures
import os
import signal
import time

from job import Job, wait_until

LOOPS = 60000       # of one rank; with two records each, more than the rings hold
BURST = 20000       # whose records the largest rings hold
BURST_FREE_BYTES = 2 << 30     # of /dev/shm: a sixteenth of it is for rings (interpose/ring/budget.h)


def stall(job, collector, loops):
    """The job makes its calls while the collector is stopped."""
    wait_until(lambda: job.query("SELECT 1 FROM event LIMIT 1"), "the first record")
    wait_until(lambda: all(entered >= 8 for _, entered, _ in job.counts()), "the first calls")
    os.kill(collector.pid, signal.SIGSTOP)
    job.go()
    wait_until(lambda: job.counts()[0][1] == loops, "the last call of rank 0")
    wait_until(lambda: job.counts()[-1][1] >= loops - 1, "the calls of the last rank")


def test_finding_about_the_end():
    with Job() as job:
        program = job.start_program(LOOPS, "hang")
        collector = job.start_collector()
        stall(job, collector, LOOPS)
        time.sleep(0.2)         # rank 0 is in its last wait
        os.kill(collector.pid, signal.SIGCONT)
        wait_until(lambda: job.query("SELECT 1 FROM finding WHERE code = 'DC201'"), "the finding")
        findings = job.query("SELECT code, number, what FROM finding WHERE severity = 'error'")
        assert [code for code, _, _ in findings] == ["DC201"], findings
        assert findings[0][1] == LOOPS - 1, findings
        entered, _, lost = job.rows()[0]
        assert lost > 0, "the rings did not overflow: %s" % job.rows()
        assert job.query("SELECT 1 FROM finding WHERE code = 'DC901'"), findings
        last = job.query("SELECT p.pid, max(w1) FROM event JOIN process p ON p.id = event.process JOIN api a ON a.number = api "
                         "WHERE a.name = 'ncclAllReduce' AND phase = 1 GROUP BY p.pid")
        assert dict(last) == {job.counts()[0][0]: LOOPS - 1, job.counts()[1][0]: LOOPS - 2}, last
        os.killpg(program.pid, signal.SIGKILL)
        assert collector.wait(timeout=120) == 0
        print("of %d calls of rank 0 %d are stored, the last among them" % (LOOPS, entered))


def test_correct_twin():
    with Job() as job:
        program = job.start_program(LOOPS)
        collector = job.start_collector()
        stall(job, collector, LOOPS)
        os.kill(collector.pid, signal.SIGCONT)
        assert program.wait(timeout=300) == 0, program.stdout.read()
        assert collector.wait(timeout=300) == 0
        # What is said of its speed is right: many small collectives, on a machine with other work.
        codes = {row[0] for row in job.query("SELECT code FROM finding WHERE state = 'open' AND code NOT LIKE 'DC6%'")}
        assert codes == {"DC901"}, codes
        for (_, entered, _), (enters, leaves, lost) in zip(job.counts(), job.rows()):
            assert enters < entered <= enters + lost and leaves + lost >= entered, (entered, enters, leaves, lost)


def test_burst_is_kept():
    """Calls at full speed, while the collector gets no processor: all are kept."""
    shared = os.statvfs("/dev/shm")
    if shared.f_bavail * shared.f_frsize < BURST_FREE_BYTES:
        print("not tested with the largest rings: /dev/shm has less than %d bytes free" % BURST_FREE_BYTES)
        return
    with Job(1) as job:
        program = job.start_program(BURST)
        collector = job.start_collector()
        stall(job, collector, BURST)
        assert program.wait(timeout=300) == 0, program.stdout.read()
        os.kill(collector.pid, signal.SIGCONT)
        assert collector.wait(timeout=300) == 0
        assert job.rows() == [(BURST, BURST, 0)], job.rows()


if __name__ == "__main__":
    test_burst_is_kept()        # alone: it needs the room of the largest rings
    with concurrent.futures.ThreadPoolExecutor() as pool:
        for done in [pool.submit(test) for test in (test_finding_about_the_end, test_correct_twin)]:
            done.result()
    print("ok")
