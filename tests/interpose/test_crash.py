"""Programs that end badly (job_crash.c): each ends as without the shim, and where it called abort() or exit() is recorded.

test_crash.py BUILD FAKE-LIBRARIES [TEST..]"""

import os
import signal
import subprocess
import sys

from watch import PROGRAMS, Run, equal, of

CRASH = os.path.join(PROGRAMS, "interpose_crash")
SECONDS = 60        # a hang; the programs end at once
ABORTED, EXITED = -signal.SIGABRT, 5
# How each ends; whether the record of its end has a stack, and what is at least on that: the frames of a handler lead to what it
# interrupted.
PROGRAMS_AND_ENDS = {
    "aborts": (ABORTED, "notice_exception", 3),
    "aborts_in_malloc": (ABORTED, "notice_exception", 6),
    "aborts_in_malloc_on_own_stack": (ABORTED, "notice_exception", 6),
    "asserts_in_handler": (ABORTED, "notice_exception", 6),
    "exits_in_malloc": (EXITED, "notice_exit", 6),
    "exits_at_once_in_malloc": (EXITED, "notice_exit", 6),
    "exits_after_damage": (EXITED, "notice_exit", 6),
    "aborts_while_loading": (ABORTED, "notice_exception", 3),
    "asserts_while_loading": (ABORTED, "notice_exception", 3),
    "crashes_while_loading": (ABORTED, "notice_exception", 5),
    "exits_at_once_while_loading": (EXITED, "notice_exit", 3),
    "crashes_in_new_thread": (ABORTED, "notice_exception", 4),
    "child_aborts": (signal.SIGABRT, None, 0),
    "crashes_on_damaged_stack": (ABORTED, "notice_exception", 4),
    "aborted_while_recording": (ABORTED, None, 0),
}


def frames_of_end(records, api):
    ends = of(records, api)
    equal(len(ends), 1, "records of the end")
    stacks = {record["frames.id"]: record["frames.count"] for record in of(records, "notice_stack")}
    return stacks.get(ends[0]["stack"], 0)


def check(name, status, api, frames, **environment):
    with Run(CRASH, name, preload=False, timeout=SECONDS) as run:
        equal(run.status, status, name + " without the shim")
    with Run(CRASH, name, timeout=SECONDS, DDPCHECK_STACKS="1", **environment) as run:
        equal(run.status, status, name)
        assert "ddpcheck" not in run.err, (name, run.err)
        if api:
            found = frames_of_end(run.records(), api)
            assert found >= frames, "%s: %d frames" % (name, found)


def test_dormant():
    """A process that has called nothing so far (DDPCHECK_DISABLE: nor ever starts)."""
    for name in ("aborts_while_loading", "aborts_in_malloc", "exits_at_once_while_loading"):
        check(name, PROGRAMS_AND_ENDS[name][0], None, 0, DDPCHECK_DISABLE="1")


def test_again_and_again():
    for _ in range(20):
        check("aborted_while_recording", ABORTED, None, 0)


def main():
    wanted = sys.argv[3:]
    tests = {name: test for name, test in globals().items() if name.startswith("test_")}
    tests.update({name: lambda name=name, end=end: check(name, *end) for name, end in PROGRAMS_AND_ENDS.items()})
    failed = 0
    for name, test in tests.items():
        if wanted and name not in wanted:
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
