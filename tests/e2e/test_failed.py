"""Whenever a process of the job failed there is a finding, and none where a helper fails, or somebody ends the job."""

import os
import sys

from line import Line

build = os.path.abspath(sys.argv[1])
FAILING = os.path.join(build, "tests", "failing")
TWIN = os.path.join(build, "tests", "suite", "hang", "exited_with_error.twin")


def check(what, condition, *details):
    assert condition, (what, *details)


def one_finding(what, line, severity, words):
    _, findings, _ = line.report()
    check(what, [(f["code"], f["severity"]) for f in findings] == [("DC205", severity)] and words in findings[0]["what"], findings)


def run_fails(what, program, status, severity, words):
    with Line(build, devices=8) as line:
        done, _, err = line.run(program)
        is_said = severity == "note" or ("DC205" in err and words in err)     # of notes the terminal has the number only
        check(what, done == status and is_said and "1 " + severity in err, done, err)
        one_finding(what, line, severity, words)


def run_is_fine(what, program, status=0):
    with Line(build, devices=8) as line:
        done, _, err = line.run(program)
        check(what, done == status and "no finding" in err, done, err)
        check(what, line.report()[:2] == (0, []), line.report())


def likely(program, wanted, unwanted):
    """The usual cause that the report names fits."""
    with Line(build, devices=8) as line:
        line.run(program)
        _, out, _ = line.call([line.tool, "report", line.trace])
        check("likely", wanted in out and unwanted not in out, out)


def lone_rank():
    run_fails("status", [FAILING, "status"], 3, "warning", "rank 0 exited with status 3")
    run_fails("segv", [FAILING, "segv"], 139, "error", "rank 0 was killed by SIGSEGV")
    run_fails("kill", [FAILING, "kill"], 137, "error", "rank 0 was killed by SIGKILL")
    run_fails("function", [FAILING, "function"], 127, "error", "rank 0 exited with status 127 (no library here has newer_has, which it calls)")
    likely([FAILING, "function"], "newer version of a library", "exception")
    run_is_fine("helper", [FAILING, "helper"])
    run_is_fine("nothing", [FAILING])
    run_fails("somebody ends it", [FAILING, "term"], 143, "note", "rank 0 was killed by SIGTERM")


def no_rank():
    """Nothing but the program of `ddpcheck run` is known."""
    run_fails("function", [FAILING, "function", "before"], 127, "error", "exited with status 127 (no library here has newer_has, which it calls)")
    run_fails("status", [FAILING, "status", "before"], 3, "warning", "exited with status 3, and no call of NCCL was recorded")
    run_fails("segv", [FAILING, "segv", "before"], 139, "error", "was killed by SIGSEGV, and no call of NCCL was recorded")
    run_fails("script", ["sh", "-c", FAILING + " function before; exit 1"], 1, "warning", "sh exited with status 1, and no call of NCCL was recorded")
    with Line(build) as line:
        status, _, err = line.run([FAILING, "", "before"])
        check("nothing", status == 0 and "made no NCCL call" in err and "DC" not in err, status, err)


def script():
    """One that starts the ranks: its status counts if none of them failed."""
    run_fails("own check", ["sh", "-c", TWIN + "; grep -q loss /dev/null"], 1, "warning", "sh exited with status 1, and no rank failed")
    run_fails("rank", ["sh", "-c", FAILING + " segv; exit 1"], 1, "error", "rank 0 was killed by SIGSEGV")
    run_fails("rank, not the script", ["sh", "-c", FAILING + " segv; exit 0"], 0, "error", "rank 0 was killed by SIGSEGV")
    run_is_fine("helper", ["sh", "-c", "grep -q loss /dev/null; " + TWIN])


def put_into_the_background():
    """The launcher is gone before the ranks make their first call."""
    with Line(build, devices=8) as line:
        status, _, err = line.run(["sh", "-c", "(sleep 1; exec %s) & exit 0" % TWIN])
        check("background", status == 0 and "8 ranks, 1 communicator, no finding" in err, status, err)
        check("background", line.report()[:2] == (0, []), line.report())


def preloaded():
    """Nobody but the collector, which the rank starts, can see how it ended."""
    for how, severity, words in (("segv", "error", "rank 0 was killed by SIGSEGV"), ("kill", "error", "rank 0 was killed by SIGKILL"),
                                 ("term", "note", "rank 0 was killed by SIGTERM"), ("", None, None)):
        with Line(build) as line:
            process = line.start_bare([FAILING, how])
            process.communicate(timeout=120)
            line.wait_collector()
            if words:
                one_finding(how, line, severity, words)
            else:
                check(how, line.report()[1] == [], line.report())


lone_rank()
no_rank()
script()
put_into_the_background()
preloaded()
