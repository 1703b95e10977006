"""What a job may do to the ground under ddpcheck: exec again and again, have no /proc, delete its trace directory.

test_surroundings.py BUILD EMULATOR-LIBRARIES"""

import os
import shutil
import subprocess

from job import COUNTED, TOOL, Job, wait_until

FILTERED = os.path.join(os.path.dirname(COUNTED), "torture_filtered")
LOOPS, EXECS, RECORDED = 20, 120, 100
WITHOUT_PROC = ["unshare", "-m", "/bin/sh", "-c", "mount -t tmpfs none /proc && exec \"$@\"", "sh"]


def run(job, *program, before=(), inside=()):
    return subprocess.run([*before, *job.run_command(*inside, *program)], cwd=job.folder, env=job.run_environment(),
                          capture_output=True, text=True, timeout=300)


def counted(job):
    return [COUNTED, job.counts_path, str(job.ranks), str(LOOPS)]


def test_execs():
    with Job(2) as job:
        done = run(job, os.path.join(os.path.dirname(COUNTED), "torture_execs"), str(EXECS))
        lines = done.stderr.splitlines()
        assert done.returncode == 0 and done.stdout == "done\n", done
        assert len([line for line in lines if "one program after the other" in line]) == 1, done.stderr
        assert "ddpcheck: 1 process of the job called NCCL and could not be recorded" in done.stderr, done.stderr
        assert "ddpcheck: %d programs called NCCL without a communicator" % RECORDED in done.stderr, done.stderr
        assert len(lines) <= 4, done.stderr


def check_complete(job, done):
    assert done.returncode == 0 and "ddpcheck: 2 ranks, 1 communicator, " in done.stderr, done
    assert [row[:2] for row in job.rows()] == [(LOOPS, LOOPS)] * job.ranks, (job.rows(), done.stderr)
    text = subprocess.run([TOOL, "report", job.trace], capture_output=True, text=True, timeout=300).stdout
    assert " ".join(text.split()).endswith("events, complete") and "still running" not in text, text


def test_no_proc():
    if subprocess.run([*WITHOUT_PROC, "true"], stderr=subprocess.DEVNULL, check=False).returncode:
        print("not tested without /proc: this user can't mount in a namespace of its own")
        return
    with Job(2) as job:
        job.make_counts()
        done = run(job, *counted(job), before=WITHOUT_PROC)
        assert done.stderr.count("there is no /proc here") == 1, done
        check_complete(job, done)
    with Job(2) as job:
        job.make_counts()
        check_complete(job, run(job, *counted(job), inside=WITHOUT_PROC))


def test_deleted_directory():
    with Job(2) as job:
        job.make_counts(go=False)
        process = job.start(job.run_command(*counted(job)), **job.run_environment())
        wait_until(lambda: job.query("SELECT 1 FROM event LIMIT 1"), "the first record")
        wait_until(lambda: all(entered >= 8 for _, entered, _ in job.counts()), "the first calls")
        rings = job.rings()
        shutil.rmtree(job.trace)
        job.go()
        said = process.communicate(timeout=300)[0]
        assert process.returncode == 0 and "was deleted while the job ran" in said, said
        for rank in range(2):
            assert "rank %d (%d of comm" % (rank, rank) in said and "%d called, %d done" % (LOOPS, LOOPS) in said, said
        assert "report: ddpcheck report" not in said, said
        assert not os.path.exists(rings), os.listdir(rings)


def test_refused_fallocate():
    """A seccomp filter refuses fallocate, as some sandboxes do: the room for rings is made by writing."""
    with Job(2) as job:
        job.make_counts()
        done = run(job, *counted(job), inside=[FILTERED, "1"])
        check_complete(job, done)


if __name__ == "__main__":
    test_refused_fallocate()
    test_execs()
    test_no_proc()
    test_deleted_directory()
    print("ok")
