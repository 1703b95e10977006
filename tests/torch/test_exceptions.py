"""A rank of PyTorch that ends while the others wait: by an exception, also with destroy_process_group() in a `finally` or
`except` block, or before or in its first call of NCCL, by sys.exit(), by os._exit(), or by returning early; one that is
stopped; and one that was only busy, and comes at last. Under --guard a call that differs from the other rank's is an exception.

test_exceptions.py BUILD. Its interpreter shuts down as Python's does, which aborts the communicator and takes a while:
neither is what went wrong."""

import functools
import os
import sys

from jobs import Line, Server, end_group, output, statuses, torch_folder, torch_version, wait_for

RANKS = 2
FAILED = "exited with status 1 after an exception (ValueError: a sample is broken)"

# case: (code, what the odd rank did at last, the place that is named or None)
CASES = {
    "raised": ("DC205", FAILED, "train_and_fail"),
    "raised-in-try": ("DC205", FAILED, "train_and_fail"),
    "raised-in-except": ("DC205", FAILED, "train_and_fail"),
    "raised-then-exit": ("DC205", FAILED, "train_and_fail"),
    "raised-then-exit-quick": ("DC205", FAILED, "train_and_fail"),
    "raised-before-first": ("DC209", "exited with status 1 after an exception (ValueError: a bad input file)", "read_data"),
    "raised-in-first": ("DC209", "exited with status 1 after an exception (RuntimeError: No backend type associated with device type cpu)",
                        "reduce_metric"),
    "exit-status": ("DC205", "exited with status 4", "refuse_arguments"),
    "exit-quick": ("DC205", "exited with status 3", "leave_at_once"),
    "returned-early": ("DC206", "exited with status 0", "leave_early"),
    "fell-off": ("DC206", "exited with status 0", "fell_off"),
}


def check(server, line, case):
    code, did, place = CASES[case]
    if code == "DC209" and torch_version() >= (2, 15):      # init_process_group() has created the communicator
        code = "DC205"
    folder = os.path.join(line.folder, case)
    line.trace = os.path.join(folder, "trace")
    leader = server.start(case, folder, DDPCHECK_DIR=line.trace, DDPCHECK_HANG_AFTER="60")

    def last():
        """What the live finding says of the odd rank, once the rank has ended."""
        said = line.query("SELECT call FROM finding_side WHERE ranks = ?", str(RANKS - 1)) if line.live_problems() else []
        return said if [did] == [text for text, in said] else None

    try:
        assert wait_for(last, 120), "%s: live: %s\n%s" % (case, line.live_findings(), output(folder))
    finally:
        end_group(leader)
        line.wait_collector()
    findings = [finding for finding in line.report()[1] if finding["severity"] != "note"]
    assert [finding["code"] for finding in findings] == [code], "%s: %s" % (case, findings)
    side = next(side for side in findings[0]["sides"] if side["ranks"] == str(RANKS - 1))
    assert side["call"] == did, "%s: %s" % (case, side)
    assert place is None or place in str(side), "%s: %s" % (case, side)
    print("%s: %s, rank %s %s" % (case, code, side["ranks"], side["call"]), flush=True)


def check_stopped(server, line):
    """The rank is said to be stopped, and the advice is to let it go on."""
    folder = os.path.join(line.folder, "stopped")
    line.trace = os.path.join(folder, "trace")
    leader = server.start("stopped", folder, DDPCHECK_DIR=line.trace, DDPCHECK_HANG_AFTER="1")

    def said():
        return line.live_findings() and line.query(
            "SELECT f.code, f.todo FROM finding f JOIN finding_side s ON s.finding = f.id WHERE s.ranks = ? AND s.\"where\" LIKE ?",
            str(RANKS - 1), "stopped by a signal%")

    try:
        assert wait_for(said, 120), "%s\n%s" % (line.live_findings(), output(folder))
        (code, todo), = said()
        assert code == "DC201" and "kill -CONT" in todo, (code, todo)
    finally:
        end_group(leader)
        line.wait_collector()
    print("stopped: DC201", flush=True)


def check_busy(server, line):
    """A finding about a rank that only runs Python is possible, and withdrawn when the rank comes."""
    folder = os.path.join(line.folder, "busy")
    line.trace, go = os.path.join(folder, "trace"), os.path.join(folder, "go")
    leader = server.start("busy", folder, DDPCHECK_DIR=line.trace, DDPCHECK_HANG_AFTER="1", DDPCHECK_TEST_GO=go)

    def states():
        return line.live_findings() and line.query("SELECT code, certainty, state FROM finding WHERE severity = 'error'")

    try:
        assert wait_for(lambda: ("DC201", "possible", "open") in states(), 120), "%s\n%s" % (states(), output(folder))
        open(go, "w").close()
        assert wait_for(lambda: statuses(folder), 120) == [0] * RANKS, output(folder)
    finally:
        end_group(leader)
        line.wait_collector()
    assert [one for one in line.report()[1] if one["severity"] != "note"] == [], line.report()[1]
    print("busy: DC201, withdrawn", flush=True)


def check_guarded(server, line):
    """The exception's text names both calls; of the two ranks one goes on."""
    folder = os.path.join(line.folder, "guarded")
    line.trace = os.path.join(folder, "trace")
    leader = server.start("guarded", folder, DDPCHECK_DIR=line.trace, DDPCHECK_HANG_AFTER="60", DDPCHECK_GUARD="1")
    try:
        assert wait_for(lambda: statuses(folder), 120) == [0] * RANKS, output(folder)
    finally:
        end_group(leader)
        line.wait_collector()
    text = output(folder)
    refused = [said for said in text.splitlines() if "ddpcheck run --guard refused rank" in said and not said.startswith("ddpcheck:")]
    assert len(refused) == 1 and "ncclAllReduce(count=8" in refused[0] and "ncclBroadcast(count=8" in refused[0], text
    assert text.count("refused: ") == 1 and text.count("went on") == 1, text
    assert [finding["code"] for finding in line.report()[1] if finding["severity"] == "error"] == ["DC101"], line.report()[1]
    print("guarded: %s" % refused[0], flush=True)


OTHERS = {"stopped": check_stopped, "busy": check_busy, "guarded": check_guarded}


def main():
    torch_folder()
    with Line(sys.argv[1], devices=RANKS, name="exceptions") as line, Server(line, RANKS) as server:
        for case in sys.argv[2:] or [*CASES, *OTHERS]:
            OTHERS.get(case, functools.partial(check, case=case))(server, line)


if __name__ == "__main__":
    main()
