"""The place of a finding is the Python line, under each Python, whoever has the GIL during the call."""

from common import marked, places, pythons, run

STEP = [("all_reduce", marked("all_reduce")), "train_step", "train", "run_rank", "main", "<module>"]


def check(python, what, expected_code):
    status, err, findings, _, text = run(python, what, 2, ["--on-finding", "abort", "--timeout", "60"] if expected_code else [])
    if not expected_code:
        assert status == 0 and findings == [], (python, status, err, findings)
        return
    found = [finding for finding in findings if finding["code"] == expected_code]
    assert len(found) == 1 and len(found[0]["sides"]) == 2, (python, findings, err)
    for side in found[0]["sides"]:
        got = places(side["frames"])
        assert got[0] == STEP[0], "%s: the call is at %s, not %s" % (python, got, STEP[0])
        assert [name for name, _ in got[1:]] == STEP[1:], "%s: the stack is %s" % (python, got)
        modules = {frame["module"] for frame in side["frames"]}
        assert not any(module and ("libffi" in module or "libpython" in module) for module in modules), modules
    assert "all_reduce()" in text and "job.py:%d" % STEP[0][1] in text, text


def check_late(python):
    """A rank that is late in each step: the lines between which its time passes, and how much."""
    status, err, findings, _, text = run(python, "late", 2)
    late = [finding for finding in findings if finding["code"] == "DC601"]
    assert status == 0 and len(late) == 1, (python, status, err, findings)
    side = late[0]["sides"][0]
    assert side["ranks"] == "1" and " ms pass each time between cudaStreamSynchronize() and ncclAllReduce()" in late[0]["what"], late
    assert places(side["frames"])[0] == ("synchronize", marked("synchronize")), side
    assert places(side["where_frames"])[:2] == [STEP[0], ("train_step", marked("write_samples") + 1)], side
    assert "something else, until it calls ncclAllReduce()" in text, text


def main():
    for python in pythons():
        check(python, "half", "DC102")
        check(python, "nothing", None)
        check(python, "held", None)
        check_late(python)
        print("%s: places are lines" % python)


if __name__ == "__main__":
    main()
