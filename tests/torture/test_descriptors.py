"""Few file descriptors (ulimit -n), for all of `ddpcheck run` or for the job alone: what can't be recorded is said, with
the reason, and what is counted is right.

test_descriptors.py BUILD EMULATOR-LIBRARIES"""

import resource
import subprocess

from job import COUNTED, TOOL, Job

LOOPS = 20
NEEDED = 16         # by the collector, besides its standard streams and its socket
NEEDED_BY_RUN = 6   # by `ddpcheck run`, besides its standard streams


def run(job, limit=None, of_job=None):
    """Returns the finished `ddpcheck run` of a job that counts its calls."""
    job.make_counts()
    program = [COUNTED, job.counts_path, str(job.ranks), str(LOOPS)]
    if of_job:
        program = ["/bin/sh", "-c", "ulimit -n %d; exec \"$@\"" % of_job, "sh", *program]
    return subprocess.run(job.run_command(*program), cwd=job.folder, env=job.run_environment(), capture_output=True, text=True,
                          timeout=300,
                          preexec_fn=(lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))) if limit else None)


def report(job):
    return subprocess.run([TOOL, "report", job.trace], capture_output=True, text=True, timeout=300).stdout


def test_refused(limit):
    with Job(2) as job:
        done = run(job, limit)
        said = "too few file descriptors: ulimit -n is %d, and the collector needs %d that are free" % (limit, NEEDED)
        assert done.returncode == 2 and said in done.stderr and "no NCCL call" not in done.stderr, (limit, done)
        assert [entered for _, entered, _ in job.counts()] == [0, 0], job.counts()


def test_low_soft_limit():
    """The collector raises the soft limit for itself, the job inherits it."""
    for limit in range(4, 12):     # with 3 no program finds its libraries
        with Job(1) as job:
            job.make_counts()
            command = job.run_command("/bin/sh", "-c", "ulimit -n")
            done = subprocess.run(["/bin/sh", "-c", "ulimit -S -n %d; exec \"$@\"" % limit, "sh", *command], cwd=job.folder,
                                  env=job.run_environment(), capture_output=True, text=True, timeout=300)
            if limit < 3 + NEEDED_BY_RUN:
                said = "ulimit -n is %d, and ddpcheck run needs %d that are free" % (limit, NEEDED_BY_RUN)
                assert done.returncode == 2 and said in done.stderr and not done.stdout, (limit, done)
            else:
                assert done.returncode == 0 and done.stdout == "%d\n" % limit, (limit, done)


def check_recorded(job, done):
    said = "ddpcheck: %d rank%s, 1 communicator, " % (job.ranks, "s" if job.ranks > 1 else "")
    assert done.returncode == 0 and said in done.stderr and "error" not in done.stderr, done
    assert [entered for _, entered, _ in job.counts()] == [LOOPS] * job.ranks, job.counts()
    assert [row[:2] for row in job.rows()] == [(LOOPS, LOOPS)] * job.ranks, job.rows()
    text = " ".join(report(job).split())
    assert text.endswith("events, complete"), text


def test_recorded(ranks, **limits):
    with Job(ranks) as job:
        check_recorded(job, run(job, **limits))


def test_process_can_not_record():
    """With 5 descriptors neither the launcher nor its rank has a free one."""
    with Job(1) as job:
        done = run(job, of_job=5)
        assert done.returncode == 1, done
        assert "2 processes of the job called NCCL and could not be recorded: too few file descriptors" in done.stderr, done
        assert "no NCCL call" not in done.stderr and "no finding;" not in done.stderr, done
        text = " ".join(report(job).split())
        assert "without 2 processes that could not be recorded" in text and "complete" not in text, text
        # The next job in this directory is another one.
        check_recorded(job, run(job))


if __name__ == "__main__":
    for limit in (4, 7, 13, 19):
        test_refused(limit)
    test_low_soft_limit()
    for limit in (20, 24, 40):
        test_recorded(2, limit=limit)
    test_recorded(1, limit=20)
    test_recorded(4, limit=20)
    test_recorded(2, of_job=12)
    test_recorded(4, of_job=16)
    test_process_can_not_record()
    print("ok")
