"""--keep: the database stays small, what was found at the start is reported although its records are gone, and nothing is
reported only because they are."""

import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import time

from line import Line

CALLS = 2 * 200 * 250       # of keep_busy.c that may be dropped
MEGABYTE = 1 << 20
ITERATIONS, PARTS = 4000, 8     # of keep_hang.c


def record(build, name, *options, environment=None):
    line = Line(build, devices=2, name="keep")
    program = os.path.join(line.build, "tests", name)
    go = os.path.join(line.folder, "go")
    job = subprocess.Popen([line.tool, "run", "--emulate", "2", "-o", line.trace, "--cuda", "all", *options, "--", program],
                           env={**os.environ, "KEEP_BUSY_GO": go, **(environment or {})}, stdin=subprocess.DEVNULL,
                           stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    end = time.monotonic() + 300
    while not has_begun(line, name) and job.poll() is None:
        assert time.monotonic() < end, "nothing was stored for 300 s"
        time.sleep(0.05)
    open(go, "w").close()
    said, _ = job.communicate(timeout=300)
    assert job.returncode == 0, said
    return line


def has_begun(line, name):
    """The start is stored, and analysed."""
    try:
        if name.endswith(".twin"):
            return line.query("SELECT 1 FROM v_wait WHERE returned_ns IS NOT NULL LIMIT 1")
        return line.query("SELECT 1 FROM finding WHERE code = 'DC301'")
    except (AssertionError, FileNotFoundError, sqlite3.Error):        # not there yet
        return False


def pid_of_collector(line):
    with open(os.path.join(line.trace, "collector.lock"), encoding="ascii") as file:
        words = file.read().split()
        return int(words[0]) if words else None     # it is being written


def wait_until(condition, what):
    end = time.monotonic() + 300
    while not condition():
        assert time.monotonic() < end, what + " did not happen in 300 s"
        time.sleep(0.05)


def has_dropped(line):
    try:
        return line.query("SELECT 1 FROM dropped")
    except (AssertionError, FileNotFoundError, sqlite3.Error):
        return False


def test_restart(build):
    """A collector that is killed after it has dropped the records of a finding: the next one counts it."""
    line = Line(build, devices=2, name="restart")
    with line:
        go, leave = (os.path.join(line.folder, name) for name in ("go", "leave"))
        program = [os.path.join(line.build, "tests", "keep_busy")]
        wait = "\"$@\"; while [ ! -e %s ]; do sleep 0.05; done" % leave
        job = subprocess.Popen([line.tool, "run", "--emulate", "2", "-o", line.trace, "--cuda", "all", "--keep", "1M", "--",
                                "/bin/sh", "-c", wait, "sh", *program], env={**os.environ, "KEEP_BUSY_GO": go},
                               stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        wait_until(lambda: has_begun(line, "keep_busy"), "the finding")
        open(go, "w").close()
        wait_until(lambda: has_dropped(line), "a record that is dropped")
        killed = pid_of_collector(line)
        os.kill(killed, signal.SIGKILL)
        wait_until(lambda: pid_of_collector(line) not in (killed, None), "the next collector")
        open(leave, "w").close()
        said, _ = job.communicate(timeout=300)
        assert job.returncode == 0, said
        end = said.splitlines()[-1]
        assert "1 error" in end and "no finding" not in end, said
        _, findings, _ = line.report()
        assert codes(findings).count("DC301") == 1, findings


def record_hang(build, keep):
    """keep_hang.c, ended as it hangs. Returns the line, and what the report finds."""
    line = Line(build, devices=2, name="hang")
    parts = iter(range(1, PARTS))
    part = next(parts)

    def is_found(line):
        """Lets the program go on while it has parts left; then, whether the hang is found."""
        nonlocal part
        last = [number for number, in line.live("SELECT max(number) FROM v_collective GROUP BY rank")]
        if part and len(last) == 2 and min(last) + 1 >= part * 2 * ITERATIONS // PARTS:
            open(os.path.join(line.folder, "part%d" % part), "w", encoding="ascii").close()
            part = next(parts, None)
        return not part and line.live_problems()

    status, _, err = line.run_until([os.path.join(line.build, "tests", "keep_hang")], ["--keep", keep, "--hang-after", "1"], is_found,
                                    environment={"KEEP_HANG_FOLDER": line.folder})
    assert status == 128 + signal.SIGTERM, (status, err)
    _, findings, _ = line.report()
    return line, findings


def what_happened(findings):
    return [(each["code"], each["severity"], each["certainty"], each["state"], each["fingerprint"],
             [(side["ranks"], side["call"], side["where"]) for side in each["sides"]])
            for each in findings]


def check_diff(line, whole):
    """What was dropped is no difference to a trace that has it: the comparison begins where both have calls."""
    (begin,), = line.query("SELECT min(number) FROM member_start")
    for arguments, dropped in ((line.trace, whole.trace), (True, False)), ((whole.trace, line.trace), (False, True)):
        status, out, err = line.call([line.tool, "diff", "--json", *arguments])
        lines = list(map(json.loads, out.splitlines()))
        assert status == 0 and not [each for each in lines if each["schema"] == "ddpcheck.difference/1"], (out, err)
        gaps = [each for each in lines if each["schema"] == "ddpcheck.dropped_calls/1"]
        assert [(each["dropped_in_a"], each["dropped_in_b"]) for each in gaps] == [dropped], gaps
        assert gaps[0]["ranks"] == "0-1" and gaps[0]["compared_from"] == begin > 1000, (gaps, begin)
    status, out, _ = line.call([line.tool, "diff", line.trace, whole.trace])
    assert status == 0 and "As far as they are compared, they called the same" in " ".join(out.split()), out
    early = os.path.join(line.folder, "early.db")
    shutil.copy(whole.database(), early)
    connection = sqlite3.connect(early)
    connection.executescript("DELETE FROM event WHERE seq > 2000")
    connection.close()
    status, out, err = line.call([line.tool, "diff", line.trace, early])
    assert status == 2 and "no call is in both" in " ".join(out.split()) and "nothing to compare" in err, (out, err)


def test_hang_after_dropped(build):
    """The calls of all but the end are gone: what is wrong at the end is found as if they were there, and whoever reads the trace
    without what the collector had found comes to the same code."""
    whole, expected = record_hang(build, "all")
    line, findings = record_hang(build, "1M")
    with whole, line:
        assert whole.query("SELECT count(*) FROM dropped") == [(0,)]
        assert what_happened(findings) == what_happened(expected) != [], (findings, expected)
        (calls,), = line.query("SELECT sum(records) FROM dropped WHERE what = 'calls'")
        assert calls > 20000, calls
        # Two collectives an iteration of each of the two ranks.
        (kept,), = line.query("SELECT count(*) FROM v_collective WHERE name NOT IN ('ncclSend', 'ncclRecv')")
        (digest,), = line.query("SELECT sum(calls) FROM v_digest")
        check_diff(line, whole)
        assert kept + digest == 2 * 2 * ITERATIONS + 1, (kept, digest)
        connection = sqlite3.connect(line.database())
        connection.executescript("DELETE FROM finding; DELETE FROM meta WHERE key = 'ended'")
        connection.close()
        _, again, _ = line.report()
        assert sorted(each[0] for each in what_happened(again)) == sorted(each[0] for each in what_happened(findings)), (again, findings)


def codes(findings):
    """Without notes, and what a busy machine may delay: the job got over that."""
    return sorted(found["code"] for found in findings if found["severity"] != "note" and found["state"] == "open")


def check_dropped(line, lines):
    """What is gone is bounded from both sides, and every reader says it."""
    dropped = [each for each in lines if each["schema"] == "ddpcheck.dropped/1"]
    stored, = line.query("SELECT count(*) FROM event")[0]
    lost = next(each for each in lines if each["schema"] == "ddpcheck.summary/1")["lost"]
    assert len(dropped) == 1 and dropped[0]["until"], dropped
    assert line.query("SELECT sum(records) FROM v_dropped") == [(dropped[0]["records"],)]
    assert stored + dropped[0]["records"] + lost >= CALLS, (stored, dropped, lost)
    pages, = line.query("SELECT (SELECT page_count FROM pragma_page_count) - (SELECT freelist_count FROM pragma_freelist_count)")[0]
    assert pages * 4096 < 4 * MEGABYTE, (pages, stored, dropped)
    assert os.path.getsize(line.database()) < 8 * MEGABYTE
    status, text, _ = line.call([line.tool, "report", line.trace])
    assert "Not checked again before " in text and "dropped (--keep)" in text, text
    return text


def main():
    build = sys.argv[1]
    test_restart(build)
    test_hang_after_dropped(build)
    with record(build, "keep_busy", "--keep", "1M") as line:
        _, findings, lines = line.report()
        assert codes(findings) == ["DC301"], findings
        found = next(found for found in findings if found["code"] == "DC301")
        assert found["ranks"] == "1" and found["sides"][0]["act"]["did"], found
        text = check_dropped(line, lines)
        assert "keep_busy.c:" in text, text
        assert line.query("SELECT count(*) FROM finding WHERE code = 'DC301' AND state = 'open'") == [(1,)]
    with record(build, "keep_busy.twin", environment={"DDPCHECK_KEEP": "1M"}) as line:
        _, findings, lines = line.report()
        assert codes(findings) == [], findings
        check_dropped(line, lines)
    with record(build, "keep_busy.twin", "--keep", "all") as line:
        _, findings, lines = line.report()
        assert codes(findings) == [], findings
        assert line.query("SELECT * FROM dropped") == []
        for command in ("run", "collect"):
            for wrong in ("20", "20G,", "2d", "100K", "some"):
                done = subprocess.run([line.tool, command, "--keep", wrong, line.trace], capture_output=True, text=True, timeout=300)
                assert done.returncode == 2 and "--keep needs a size" in done.stderr and wrong in done.stderr, done
    print("kept")


if __name__ == "__main__":
    main()
