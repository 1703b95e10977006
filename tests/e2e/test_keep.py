"""--keep: the database stays small, what was found at the start is reported although its records are gone, and nothing is
reported only because they are."""

import os
import signal
import sqlite3
import subprocess
import sys
import time

from line import Line

CALLS = 2 * 200 * 250       # of keep_busy.c that may be dropped
MEGABYTE = 1 << 20


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
        return int(file.read().split()[0])


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
        wait_until(lambda: pid_of_collector(line) != killed, "the next collector")
        open(leave, "w").close()
        said, _ = job.communicate(timeout=300)
        assert job.returncode == 0, said
        end = said.splitlines()[-1]
        assert "1 error" in end and "no finding" not in end, said
        _, findings, _ = line.report()
        assert codes(findings).count("DC301") == 1, findings


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
                done = subprocess.run([line.tool, command, "--keep", wrong, line.trace], capture_output=True, text=True, timeout=60)
                assert done.returncode == 2 and "--keep needs a size" in done.stderr and wrong in done.stderr, done
    print("kept")


if __name__ == "__main__":
    main()
