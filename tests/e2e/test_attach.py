"""ddpcheck attach: jobs that were started without ddpcheck and hang, the right ranks and lines; a correct one is left alone."""

import json
import os
import re
import subprocess
import sys
import time

from line import Line, end_group

SUITE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "suite")
# program of tests/suite: code, ranks that are missing, a function of theirs (NULL: they are gone)
HANGS = {
    "hang/rank_asleep": ("DC201", "0", "write_checkpoint"),
    "hang/skipped_on_one_rank": ("DC201", "1", "skipped_on_one_rank"),
    "hang/stopped_by_a_signal": ("DC201", "1", "stopped_by_a_signal"),
    "hang/killed": ("DC205", "2", None),
    "hang/window_left_out_at_end": ("DC205", "1", None),    # the others are in a call of NCCL's whose frame is not there
    "hang/waits_for_a_lock": ("DC201", "2", "waits_for_a_lock"),    # ranks are threads
    "setup/rank_never_comes": ("DC209", None, None),
}


def unwatched(line, **more):
    """The emulator alone: no shim."""
    environment = line.bare_environment(**more)
    for name in ("LD_PRELOAD", "DDPCHECK_DIR"):
        environment.pop(name, None)
    return environment


def attach(line, *arguments):
    status, out, err = line.call([line.tool, "attach", *arguments])
    if "does not let us look" in err and os.getuid():
        print("skipped: " + err)
        sys.exit(77)
    return status, out, err


def findings_of(out):
    lines = [json.loads(text) for text in out.splitlines()]
    return [each for each in lines if each.get("schema", "").startswith("ddpcheck.finding/")]


def attach_until(line, pid, found):
    """The findings as soon as there are some: a job takes a while until it hangs."""
    end = time.monotonic() + 120
    while True:
        status, out, err = attach(line, "--json", "--looks", "3", str(pid))
        findings = findings_of(out)
        if found(findings) or time.monotonic() > end:
            return status, findings, err


def test_hang(line, program, expected):
    code, ranks, function = expected
    job = subprocess.Popen([os.path.join(line.build, "tests", "suite", program)], env=unwatched(line), cwd=line.folder,
                           stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True)
    try:
        status, findings, err = attach_until(line, job.pid, lambda found: any(each["code"] == code for each in found))
    finally:
        end_group(job)
    assert [each["code"] for each in findings] == [code] and status == 1, (program, status, findings, err)
    finding = findings[0]
    assert finding["certainty"] == "possible", finding
    if ranks:
        missing = [side for side in finding["sides"] if side["ranks"] == ranks]
        assert missing and finding["sides"].index(missing[0]) > 0, (program, finding)
        assert function is None or function in json.dumps(missing[0]), (program, missing)


def test_correct(line):
    """Its result is the same with an attach in it, which finds nothing."""
    program = [line.trainer, "--ranks", "4", "--iterations", "150"]
    alone = subprocess.run(program, env=unwatched(line), cwd=line.folder, capture_output=True, text=True, timeout=300)
    job = subprocess.Popen(program, env=unwatched(line), cwd=line.folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                           stderr=subprocess.DEVNULL, text=True, start_new_session=True)
    seen = 0
    while job.poll() is None:
        status, out, err = attach(line, "--json", "--looks", "2", str(job.pid))
        # on a busy machine a rank may be late for a moment: a note
        assert status != 1 and all(each["severity"] == "note" for each in findings_of(out)), (status, out, err)
        seen += status == 0
    results = [re.sub(r"in [0-9.]+ s, [0-9.]+ images/s", "", text) for text in (job.stdout.read(), alone.stdout)]
    assert seen and results[0] == results[1] and job.returncode == 0, (seen, job.returncode, results)
    return seen


def test_output(line):
    """-o keeps a trace that the other commands read; - prints what import reads."""
    job = subprocess.Popen([os.path.join(line.build, "tests", "suite", "hang", "rank_asleep")], env=unwatched(line), cwd=line.folder,
                           stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True)
    try:
        attach_until(line, job.pid, bool)
        status, out, err = attach(line, "-o", "now", str(job.pid))
        assert status == 1 and re.search(r"ranks 1-3\s+wait in cudaStreamSynchronize", out), (status, out, err)
        assert "looked at ranks 0-3\n" in err, err
        status, seen, err = attach(line, "-o", "-", str(job.pid))
        assert status == 0, err
    finally:
        end_group(job)
    status, out, err = line.call([line.tool, "report", "now"])
    assert status == 1 and "DC201" in out, (status, out, err)
    with open(os.path.join(line.folder, "seen.jsonl"), "w") as file:
        file.write(seen)
    status, out, err = line.call([line.tool, "import", "-o", "seen.db", "seen.jsonl"])
    assert status == 0 and "1 error" in out, (status, out, err)
    status, out, err = line.call([line.tool, "stacks", "seen.db"])
    assert status == 0 and "write_checkpoint" in out, (status, out, err)


def test_errors(line):
    status, out, err = attach(line, "1x")
    assert status == 2 and "PID is the number" in err, err
    status, out, err = attach(line, "--looks", "1")
    assert status == 2 and "one look does not show what moves" in err, err
    status, out, err = attach(line, str(2 ** 22 - 1))
    assert status == 2 and "uses NCCL" in err, err


def main():
    build = os.path.abspath(sys.argv[1])
    for program, expected in HANGS.items():
        with Line(build, name="attach") as line:
            test_hang(line, program, expected)
    for test in (test_correct, test_output, test_errors):
        with Line(build, name="attach") as line:
            print(test.__name__, test(line))


main()
