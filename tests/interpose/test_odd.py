"""Programs that treat their process in odd ways (job_odd.c): each runs as without the shim, and its calls are recorded or the
shim says why not.

test_odd.py BUILD FAKE-LIBRARIES [TEST..]"""

import os
import subprocess
import sys
import tempfile

from watch import PROGRAMS, Run, equal, of

ODD = os.path.join(PROGRAMS, "interpose_odd")
# Recorded, without a word.
QUIET = ("clears_environment", "replaces_environment", "own_environment", "no_arguments", "closed_streams", "closes_all",
         "small_stack", "counts_children", "blocks_signals", "few_files", "undumpable", "lost_directory", "cancels_thread", "jumps_out_of_call", "ends_in_call", "calls_in_handler")
# Not recorded, which is said in one line.
REFUSED = {"no_files": "too few file descriptors", "small_files": "can't"}
COUNTS = {"closes_all": [2, 1], "cancels_thread": [2], "jumps_out_of_call": [1, 2], "ends_in_call": [2],
          "calls_in_handler": [1, *[3] * 1000, 2]}


def counts(run):
    return [record["op.count"] for record in of(run.records(), "ncclAllReduce", "ENTER")]


def collector_in(folder):
    """A collector that only leaves a trace of having been started."""
    path = os.path.join(folder, "collector")
    with open(path, "w", encoding="ascii") as file:
        file.write('#!/bin/sh\necho "$@" > %s/started\n' % folder)
    os.chmod(path, 0o755)
    return path


def test_quiet_programs():
    for name in QUIET:
        with tempfile.TemporaryDirectory() as folder:
            started = name != "lost_directory"      # where the shell that stands for the collector would complain
            run = Run(ODD, name, DDPCHECK_COLLECT=str(int(started)), DDPCHECK_COLLECTOR=collector_in(folder))
            with run:
                # The program has closed its stdout.
                equal((run.status, run.out, run.err), (0, "" if name == "closed_streams" else "ok\n", ""), name)
                equal(counts(run), COUNTS.get(name, [1]), name + ": operations")
                equal(os.path.exists(os.path.join(folder, "started")), started, name + ": the collector was started")


def test_small_stacks():
    """A thread of 16 KB makes the first calls of NCCL, with whole call stacks."""
    with Run(ODD, "small_stack", DDPCHECK_STACKS="all") as run:
        run.ok()
        equal(counts(run), [1], "operations")
        assert of(run.records(), "notice_stack"), "call stacks"


def test_left_calls():
    """What became of a call that a longjmp left is not known: that is said, and counted as a lost record."""
    for name, left in (("jumps_out_of_call", 1), ("calls_in_handler", 1), ("closed_streams", 0)):
        with Run(ODD, name) as run:
            records = run.records()
            equal(len(of(records, "notice_blind")), left, name + ": notices")
            equal(of(records, "lost")[0]["control"], left, name + ": records lost")


def test_refused_programs():
    for name, words in REFUSED.items():
        with Run(ODD, name) as run:
            equal((run.status, run.out), (0, "ok\n"), name)
            assert run.err.startswith("ddpcheck: ") and words in run.err and run.err.count("\n") == 1, (name, run.err)


def test_nobody_reads_the_message():
    """The shim has something to say (no collector) and stderr is a closed or a full pipe."""
    for name in ("broken_pipe", "full_pipe"):
        with Run(ODD, name, DDPCHECK_COLLECT="1", DDPCHECK_COLLECTOR="/nonexistent", timeout=300) as run:
            run.ok()
            equal(counts(run), [1], name)


def test_limits():
    for name in ("small_memory", "no_processes"):
        with Run(ODD, name) as run:
            equal((run.status, run.out), (0, "ok\n"), name)


def main():
    wanted = sys.argv[3:]
    failed = 0
    for name, test in list(globals().items()):
        if not name.startswith("test_") or (wanted and name not in wanted):
            continue
        try:
            test()
            print("passed", name)
        except (AssertionError, subprocess.SubprocessError) as error:
            failed += 1
            print("FAILED %s: %s: %s" % (name, type(error).__name__, error))
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
