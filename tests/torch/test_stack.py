"""What PyTorch 2.15 does differently, on the emulator: stack.py's jobs and what is said of them.

test_stack.py BUILD [CASE...]."""

import os
import sys

from jobs import Line, Server, end_group, output, statuses, torch_folder, torch_version, wait_for

RANKS = 2

# case: (code or None, words of its sentence, from which version of PyTorch on).
CASES = {
    "objects": (None, "", (2, 10)),
    "barrier": (None, "", (2, 10)),
    "unwritten": ("DC310", "", (2, 10)),
    "gathered": ("DC201", "all_gather() [ncclBroadcast(", (2, 10)),
    "metrics": ("DC201", "comm metrics ", (2, 15)),
    "symmetric": (None, "", (2, 10)),
}
HANGS = ("DC201",)


def check(server, line, case):
    code, words, _ = CASES[case]
    folder = os.path.join(line.folder, case)
    line.trace = os.path.join(folder, "trace")
    leader = server.start(case, folder, DDPCHECK_DIR=line.trace, DDPCHECK_HANG_AFTER="2")
    try:
        if code in HANGS:
            assert wait_for(line.live_findings, 120), "%s: nothing was found\n%s" % (case, output(folder))
        else:
            assert wait_for(lambda: statuses(folder), 120) == [0] * RANKS, (case, statuses(folder), output(folder))
    finally:
        end_group(leader)
        line.wait_collector()
    findings = [finding for finding in line.report()[1] if finding["severity"] != "note"]
    assert [finding["code"] for finding in findings] == ([code] if code else []), "%s: %s" % (case, findings)
    _, said, _ = line.call([line.tool, "report", line.trace])
    assert words in " ".join(said.split()), "%s: %r is not in:\n%s" % (case, words, said)
    if case == "symmetric":
        assert "symmetric memory" in " ".join(said.split()), said       # DC903: not seen
    if torch_version() >= (2, 15):
        assert "default_pg" in said, said
    print("%s: %s" % (case, code or "no finding"), flush=True)


def main():
    torch_folder()
    with Line(sys.argv[1], devices=RANKS, name="stack") as line, Server(line, RANKS, "stack") as server:
        for case in sys.argv[2:] or CASES:
            if torch_version() >= CASES[case][2]:
                check(server, line, case)


if __name__ == "__main__":
    main()
