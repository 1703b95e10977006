"""A hang shows where each rank's threads stand, whatever the stuck rank does and whoever has the GIL."""

import concurrent.futures
import sys

from common import marked, places, pythons, run, short

# what rank 2 does: (its place, the calls that it may be in; to 3.10 Python sleeps in select)
STUCK = {
    "sleep": (0, ["clock_nanosleep", "select"]), "loop": (1, [""]), "read": (2, ["read"]), "lock": (3, None),
    "gil-sleep": (4, ["sleep", "clock_nanosleep"]), "gil-read": (5, ["read"]), "gil-loop": (6, [""]),
}


def waits(line):
    return ("DC201", "0-1,3") in line.live_sides()


def hangs(line):
    """Ranks wait for rank 2, and each has said where its threads are."""
    return waits(line) and line.live("SELECT count(DISTINCT rank) FROM v_thread_stack") == [(4,)]


def stacks_of(stacks, main):
    return {stack["ranks"]: stack for stack in stacks if stack["main"] == main}


def told(findings):
    """Without notes: that a rank is late may be said before it is missing."""
    return [finding for finding in findings if finding["severity"] != "note"]


def check(python, what):
    status, err, findings, stacks, text = run(python, what, until=hangs)
    findings = told(findings)
    assert [finding["code"] for finding in findings] == ["DC201"], (python, what, findings, err)
    line, calls = marked("stuck", STUCK[what][0]), STUCK[what][1]
    mains = stacks_of(stacks, True)
    assert set(mains) == {"0-1,3", "2"}, "%s, %s: groups %s" % (python, what, sorted(mains))
    got = places(mains["2"]["frames"])
    near = range(line - (what.endswith("loop")), line + 1)      # a loop is at its head or in its body
    assert got[0][0] == "evaluate" and got[0][1] in near, "%s, %s: rank 2 is at %s" % (python, what, got)
    assert [name for name, _ in got[1:]] == ["train", "run_rank", "main", "<module>"], got
    assert calls is None or mains["2"]["in"] in calls, "%s, %s: rank 2 is in %r" % (python, what, mains["2"]["in"])
    waiting = mains["0-1,3"]
    assert places(waiting["frames"])[0] == ("synchronize", marked("synchronize")), waiting
    assert waiting["in"] == "cudaStreamSynchronize" and not waiting["outer_unknown"], waiting
    loaders = [stack for stack in stacks if not stack["main"]]
    assert any(("load_batches", marked("loader")) in places(stack["frames"]) and stack["ranks"] == "0-3" and
               stack["threads"] == 4 for stack in loaders), loaders
    # The finding's side of the missing rank has its place now, and the text shows both groups.
    side = [side for side in findings[0]["sides"] if side["ranks"] == "2"][0]
    assert places(side["where_frames"]) == got, side
    assert "Where the threads were when the job hung" in text and "ranks 0-1,3" in text and "evaluate()" in text, text


def check_async(python):
    """The loop's own frames are there; the coroutine that is suspended is on nobody's stack."""
    _, err, findings, stacks, _ = run(python, "async", until=hangs)
    assert [finding["code"] for finding in told(findings)] == ["DC201"], (findings, err)
    frames = stacks_of(stacks, True)["2"]["frames"]
    assert ("evaluate", marked("stuck", 6) + 2) in places(frames), places(frames)
    assert any(short(frame["function"]) == "run_forever" for frame in frames), frames


def check_off(python):
    _, err, findings, stacks, text = run(python, "sleep", environment={"DDPCHECK_PYSTACK": "off"}, until=waits)
    findings = told(findings)
    assert [finding["code"] for finding in findings] == ["DC201"] and stacks == [], (findings, stacks, err)
    assert "Where the threads were" not in text
    assert not any(frame["file"] and frame["file"].endswith("job.py") for side in findings[0]["sides"]
                   for frame in side["frames"] + side["where_frames"]), findings


def main():
    known = pythons()
    with concurrent.futures.ThreadPoolExecutor(4) as pool:      # they wait for most of their time
        checks = [pool.submit(check_async, known[-1]), pool.submit(check_off, known[-1])]
        for python in known:
            ways = STUCK if python == known[-1] or sys.argv[2:] == ["all"] else ["sleep", "gil-read"]
            checks += [pool.submit(check, python, what) for what in ways]
            print("%s: %s" % (python, ", ".join(ways)))
        for done in checks:
            done.result()


if __name__ == "__main__":
    main()
