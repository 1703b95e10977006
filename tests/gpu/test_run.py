"""A dry run of tests/gpu/run on the emulated GPU: the same commands and the same reading of what they print.

test_run.py BUILD"""

import json
import os
import re
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)

import bench  # noqa: E402
import checks  # noqa: E402
import frameworks  # noqa: E402
import overhead  # noqa: E402

BUILD = os.path.abspath(sys.argv[1])
NO_GPU = 77
# What a dry run can't do, and the test that runs it elsewhere or the reason.
SKIPPED = {"static-runtime", "ddptrain-slow-host", "convolutions-cudnn", "torch-programs", "torch-overhead",
           *(name + side for name in ("cupy-", "jax-") for side in ("clean", "skip")),
           *("torch-" + case for case in frameworks.CASES if case not in frameworks.DRY_TORCH)}


def run(work, *words, **environment):
    done = subprocess.run([os.path.join(HERE, "run"), "--emulate", "--build", BUILD, "--work", work, *words], capture_output=True,
                          text=True, timeout=800, env={**os.environ, **environment}, check=False)
    return done.returncode, done.stdout + done.stderr


def rows_of(text):
    return {match[1]: (match[2], match[3]) for match in
            re.finditer(r"^\| ([a-z0-9-]+) \| (passed|FAILED|skipped) \| \d+ s \| (.*) \|$", text, re.MULTILINE)}


def page(work):
    with open(os.path.join(work, "gpu-results.md")) as file:
        return file.read()


def test_all(work):
    """In several calls: each goes on where the one before it stopped."""
    status, out = run(work, "--limit", "0")
    assert status == 0 and rows_of(out) == {} and "left for the next call: kernels progress " in out, out
    status, out = run(work, "--limit", "2000", "kernels", "kernels-racecheck")
    assert status == 0 and set(rows_of(out)) == {"kernels", "kernels-racecheck"}, out
    status, out = run(work, "--limit", "2000")
    rows = rows_of(out)
    assert set(rows) == {check.name for check in checks.CHECKS} - {"kernels", "kernels-racecheck"}, "run again: %s" % sorted(rows)
    found = rows_of(page(work))
    assert list(found) and set(found) == {check.name for check in checks.CHECKS}, "rows of all calls"
    bad = {name: text for name, (result, text) in found.items() if result == "FAILED"}
    assert not bad and status == 0, bad
    skipped = {name for name, (result, _) in found.items() if result == "skipped"}
    assert skipped - {"torch-twins"} == SKIPPED, skipped
    assert "dry run on the emulated GPU" in page(work) and "Figures from a GPU" not in page(work), "a dry run says so"


def test_refusals():
    with tempfile.TemporaryDirectory() as work:
        status, out = run(work, "kernels", DDPCHECK_EMU_DRIVER_VERSION="12080")
        assert status == 1 and "the driver takes CUDA up to 12.8, the runtime is 13.0" in out, out
        status, out = run(work, "kernels", DDPCHECK_EMU_DEVICES="0")
        assert status == NO_GPU and "no GPU here; nothing was run" in out, out
        status, out = run(work, "no-such-check")
        assert status == 2 and "no check is named no-such-check" in out, out
        assert not os.path.exists(os.path.join(work, "gpu-results.md")), "no row without a run"


class Place(bench.Bench):
    """A bench whose commands print what a test says."""

    def __init__(self, text, rows=()):
        self.text, self.rows, self.tool, self.emulated = text, list(rows), "ddpcheck", False
        self.environment = {"PATH": os.path.join(HERE, "stand-ins")}

    def command(self, *words, expect=0, until=None, **environment):
        return self.text

    def program(self, *path):
        return "/".join(path)

    def query(self, trace, sql):
        return self.rows.pop(0)


def refused(check, *arguments):
    try:
        check(*arguments)
    except bench.Failed as why:
        return str(why)
    raise AssertionError("not refused: %s %s" % (check, arguments))


def test_checks_can_fail():
    """What must not pass: hazards of the sanitizer, lost progress words, a finding too much or too few."""
    assert refused(checks.sanitizer("racecheck"), Place("========= RACECHECK SUMMARY: 2 hazards displayed (1 errors)")) == \
        "SUMMARY: 2 hazards"
    assert refused(checks.sanitizer("memcheck"), Place("ok")).startswith("no summary")
    for issued, started, done in ((10, 10, 9), (10, 9, 9), (9, 9, 9)):
        refused(checks.compare_progress, Place("", [[(issued,)], [(started, done)], [(0,)]]), "", 10)
    checks.compare_progress(Place("", [[(10,)], [(10, 10)], [(0,)]]), "", 10)
    line = json.dumps({"code": "DC201", "severity": "error", "state": "open"})
    refused(Place(line).expect_findings, "", [])
    refused(Place("").expect_findings, "", ["DC201"])
    refused(checks.two_runtimes, Runtimes(["12080 13000", "12080 12080"]))
    refused(checks.two_runtimes, Runtimes(["13000 13000", "13000 13000"]))


class Runtimes(Place):
    def __init__(self, texts):
        super().__init__("")
        self.texts = texts

    def command(self, *words, expect=0, **environment):
        return self.texts.pop(0)

    def fresh_trace(self):
        return ""


def test_intervals():
    """Of 8 pairs, all but a part of 2/256 of the time the median lies between the smallest and the largest ratio."""
    ratios = [0.9 + i / 100 for i in range(8)]
    low, high, sure = overhead.sign_interval(ratios)
    assert (low, high) == (ratios[0], ratios[-1]) and abs(sure - 0.9921875) < 1e-9, (low, high, sure)
    low, high, sure = overhead.sign_interval(list(range(20)))
    assert (low, high) == (5, 14) and 0.95 < sure < 0.97, (low, high, sure)
    assert overhead.sign_interval([1.0])[2] == 0


if __name__ == "__main__":
    test_intervals()
    test_checks_can_fail()
    test_refusals()
    with tempfile.TemporaryDirectory() as folder:
        test_all(folder)
