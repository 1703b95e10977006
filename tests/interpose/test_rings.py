"""The memory of the rings: it grows where it is needed, within what is left, and nothing that is written into it harms the job.

test_rings.py BUILD FAKE-LIBRARIES [TEST...]"""

import os
import re
import shutil
import subprocess
import sys
import tempfile

from watch import JOB, PROGRAMS, Run, equal, of

RINGS = os.path.join(PROGRAMS, "interpose_rings")
FIRST_BYTES = 128 << 10     # of a ring file with two threads that make a few calls
GROUPS = "/sys/fs/cgroup/memory"


def ring_bytes(run):
    return sum(os.stat(file).st_blocks * 512 for file in run.files())


def test_a_few_calls_take_little():
    with Run(JOB, "threads").ok() as run:
        assert ring_bytes(run) <= 2 * FIRST_BYTES, ring_bytes(run)


def test_a_burst_makes_one_ring_grow():
    with Run(RINGS, "burst").ok() as run:
        records = run.records()
        equal(len(of(records, "ncclAllReduce", "ENTER")), 5001, "operations")
        equal(len(of(records, "cudaMemcpyAsync")), 2 * 5001 if of(records, "cudaMemcpyAsync", "LEAVE") else 5001, "copies")
        lost = of(records, "lost")[0]
        equal((lost["control"], lost["bulk"], lost["rings"]), (0, 0, 4), "lost records, rings")
        serials = [record["serial"] for record in records if "serial" in record]
        equal(serials, list(range(1, len(serials) + 1)), "serials")


def test_workers_cost_nothing():
    """A child of fork() that calls nothing has none of the shim's tables, which take 9 MB."""
    with Run(RINGS, "worker") as run, Run(RINGS, "worker", preload=False) as alone:
        kb, without = (int(one.out.split()[0]) for one in (run, alone))
        assert kb < without + 512, "%d kB, without the shim %d" % (kb, without)


def test_what_is_written_into_the_mapping_harms_nobody():
    with Run(RINGS, "scribble") as run:
        equal((run.status, run.out.splitlines()[-1:]), (0, ["ok"]), "the job is undisturbed: %s" % run.err)


def test_a_memory_limit():
    """Two ranks with 33 threads each, in a container with 600 MB: the kernel ends nobody."""
    group = os.path.join(GROUPS, "ddpcheck-%d" % os.getpid())
    try:
        os.mkdir(group)
        with open(os.path.join(group, "memory.limit_in_bytes"), "w", encoding="ascii") as file:
            file.write(str(600 << 20))
    except OSError as error:
        print("  can't limit memory: %s: skipped" % error)
        return
    try:
        inside = ("sh", "-c", 'echo $$ > %s/cgroup.procs; "$@" & "$@" && wait $!' % group, "sh")
        with Run(*inside, JOB, "many_threads") as run:
            equal((run.status, run.out), (0, "ok\nok\n"), "the ranks: %s" % run.err)
            equal([len(of(run.records(file), "ncclAllReduce", "ENTER")) for file in run.files()], [300, 300], "calls")
            assert ring_bytes(run) <= (600 << 20) / 16, ring_bytes(run)
    finally:
        os.rmdir(group)


NOBODY = 65534


def calls_of(run):
    return len([record for record in run.records() if "op.number" in record])


def test_the_name_is_new_for_each_trace():
    """It was made of the path: whoever knew that made the directory first, and nothing was recorded."""
    names = set()
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(2):
            with Run(JOB, "collectives", DDPCHECK_DIR=os.path.join(folder, "trace")).ok() as run:
                run.trace = os.path.join(folder, "trace")
                names.add(os.path.basename(run.rings()))
            shutil.rmtree(run.trace)
    equal(len(names), 2, "names: %s" % names)
    assert all(re.fullmatch("ddpcheck-%d-[0-9a-f]{32}-[0-9a-f]{16}" % os.geteuid(), name) for name in names), names


def test_a_name_that_somebody_took():
    """After a job its name is known to other users: one of them makes the directory before the next job begins."""
    if os.geteuid():
        print("  not root: skipped")
        return
    with tempfile.TemporaryDirectory() as folder:
        trace = os.path.join(folder, "trace")
        with Run(JOB, "collectives", DDPCHECK_DIR=trace).ok() as run:
            run.trace, taken = trace, None
            taken = run.rings()
        os.mkdir(taken, 0o777)
        os.chown(taken, NOBODY, NOBODY)
        try:
            with Run(JOB, "collectives", DDPCHECK_DIR=trace).ok() as run:
                run.trace = trace
                assert run.rings() != taken and os.listdir(taken) == [], run.rings()
                equal(calls_of(run), 13, "operations")
        finally:
            os.rmdir(taken)


def test_the_rings_file_of_another_trace():
    """A copied trace directory names the rings of a job that still runs: the jobs stay apart."""
    with Run(JOB, "collectives").ok() as first, tempfile.TemporaryDirectory() as folder:
        copy = os.path.join(folder, "copy")
        shutil.copytree(first.trace, copy)
        with Run(JOB, "collectives", DDPCHECK_DIR=copy).ok() as second:
            second.trace = copy
            assert second.rings() != first.rings(), first.rings()
            equal([calls_of(run) for run in (first, second)], [13, 13], "operations in each one's rings")


def test_a_trace_that_was_moved():
    """It keeps its rings: a job that runs goes on in them."""
    with Run(JOB, "collectives").ok() as first:
        moved = first.trace + "-moved"
        os.rename(first.trace, moved)
        with Run(JOB, "collectives", DDPCHECK_DIR=moved).ok() as second:
            second.trace = first.trace = moved
            equal(len(second.files()), 2, "ring files of both processes")


def main():
    wanted = sys.argv[3:]
    tests = [(name, test) for name, test in globals().items() if name.startswith("test_") and (not wanted or name in wanted)]
    failed = 0
    for name, test in tests:
        try:
            test()
            print("passed", name)
        except (AssertionError, subprocess.SubprocessError, IndexError, KeyError, ValueError) as error:
            failed += 1
            print("FAILED %s: %s: %s" % (name, type(error).__name__, error))
    print("%d tests, %d failed" % (len(tests), failed))
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
