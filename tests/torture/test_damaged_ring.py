"""Something writes over the ring file of a rank that runs: the collector sets it aside, and the report says that records were lost.

test_damaged_ring.py BUILD EMULATOR-LIBRARIES"""

import os
import re
import subprocess

from job import TOOL, Job, wait_until

LOOPS, BEFORE_GO, HEADER_BYTES = 20, 8, 4096


def ring_file(job, pid):
    return next(os.path.join(job.rings(), name) for name in os.listdir(job.rings()) if re.search(r"\b%d\b" % pid, name))


def main():
    with Job(2) as job:
        job.make_counts(go=False)
        program = job.start_program(LOOPS)
        collector = job.start_collector()
        wait_until(lambda: all(entered >= BEFORE_GO for _, entered, _ in job.counts()), "the first calls")
        wait_until(lambda: job.rows()[1][:2] == (BEFORE_GO, BEFORE_GO), "the first calls of rank 1 in the database")
        path = ring_file(job, job.counts()[1][0])
        with open(path, "r+b") as file:
            bytes_left = os.fstat(file.fileno()).st_size - HEADER_BYTES
            file.seek(HEADER_BYTES)
            file.write(b"\xff" * bytes_left)
        wait_until(lambda: os.path.exists(path + ".bad"), "the ring file set aside")
        job.go()
        assert program.wait(timeout=300) == 0, program.stdout.read()
        said = collector.communicate(timeout=300)[0]
        assert collector.returncode == 0 and "is damaged" in said and "the other processes go on" in said, said
        assert job.rows()[0][:2] == (LOOPS, LOOPS), job.rows()
        report = subprocess.run([TOOL, "report", job.trace], capture_output=True, text=True, timeout=300).stdout
        text = " ".join(report.split())
        assert "DC901: 1 record of rank 1" in text and "of all there (1 of" in text, report
        assert "writes through a bad pointer" in text and "Certain findings remain true" not in text, report
        assert "not seen: calls whose ring file is damaged" in text, report
    print("ok")


if __name__ == "__main__":
    main()
