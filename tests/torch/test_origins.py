"""Ranks of PyTorch jobs that diverged before the call in which they hang (origins.py): each finding begins with where, its twin has
none.

test_origins.py BUILD [CASE...]"""

import os
import sys

from jobs import GOES_ON, HANGS, Line, Server, beside, end_group, output, statuses, wait_for

RANKS = 3
# case: code, the odd ranks, words of what the finding begins with, words of its fix. {text}: the line of origins.py that has it.
CASES = {
    "logged-by-rank-0": ("DC101", "0", ["rank 0 went on at log_metrics()", "after 3 calls in gradient bucket of DDP at",
                                        "the others make a 4th"], "condition on the rank"),
    "patience-is-over": ("DC101", "2", ["rank 2 left learn() after the common call", "{dist.all_gather(scores}",
                                        "the others went on in gradient bucket of DDP"], "Let all ranks leave together"),
    "shorter-validation": ("DC101", "2", ["rank 2 went on in gradient bucket of DDP", "after 3 calls at validate()",
                                          "{dist.all_reduce(score)}"], "the number of batches"),
    "expert-without-tokens": ("DC102", "2", ["rank 2 left out the call in FSDP's all-gather of parameters", "{self.expert(x)}"],
                              "no tokens"),
    "window-by-memory": ("DC101", "2", ["rank 2 reduced gradients in 2 of 8 backward passes, the others in 3 of 6"],
                         "no_sync() on all ranks or on none"),
    "logger-thread": ("DC102", "2", ["two threads of a process make calls on this communicator", "report_metrics()"],
                      "a process group (communicator) of its own"),
    "barrier-meets-sum": ("DC102", "2", [], "different calls of the program"),
    "other-order": ("DC110", "2", [], "one order on every rank"),
    "turned-order": ("DC102", "2", ["rank 2 and the others make the same 3 calls from #1 on, in different orders"],
                     "one order on every rank"),
    "crossed-groups": ("DC202", "2", [], "in one order on every rank"),
    "wrong-source": ("DC201", "0", [], "names the wrong rank"),
    "bad-batch-logged": ("DC101", "2", ["rank 2 caught an exception (ValueError: corrupt sample 17)", "{raise ValueError(}"],
                         "let all ranks skip the step together"),
    "bad-batch-caught": ("DC101", "2", ["after 4 calls in gradient bucket of DDP", "the others make a 5th"], ""),
    "one-batch-less": ("DC206", "2", ["rank 2 ran 7 backward passes, ", " 8"], "the same number of backward passes"),
}


def line_with(text):
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "origins.py")) as program:
        numbers = [number for number, line in enumerate(program, 1) if text in line]
    assert len(numbers) == 1, "%s is in lines %s of origins.py" % (text, numbers)
    return "origins.py:%d" % numbers[0]


def run(server, line, case, code, ranks):
    leader = server.start(case, line.folder, DDPCHECK_DIR=line.trace, DDPCHECK_HANG_AFTER=HANGS if code else GOES_ON)
    try:
        if code is None:
            return wait_for(lambda: statuses(line.folder), 300)
        wait_for(lambda: (code, ranks) in line.live_sides(), 300)
        wait_for(lambda: statuses(line.folder), 3)      # what the threads call next shows meanwhile
        return None
    finally:
        end_group(leader)
        line.wait_collector()


def check(server, line, case):
    code, ranks, words, fix = CASES[case]
    line = line.beside(case)
    run(server, line, case, code, ranks)
    found = [finding for finding in line.report()[1] if finding["severity"] != "note"]
    assert [finding["code"] for finding in found] == [code], "%s: %s\n%s" % (case, found, output(line.folder))
    assert ranks in [side["ranks"] for side in found[0]["sides"]], "%s: %s" % (case, found)
    origin = (found[0]["origin"] or {"what": ""})["what"]
    for word in words:
        word = line_with(word[1:-1]) if word.startswith("{") else word
        assert word in origin, "%s: '%s' is not in '%s'" % (case, word, origin)
    assert fix in found[0]["todo"], "%s: the fix is %s" % (case, found[0]["todo"])
    report = " ".join(line.call([line.tool, "report", line.trace])[1].split())
    assert code == "DC206" or code == "DC101" or "must be the same" not in report, report
    print("%s: %s" % (case, origin), flush=True)


def check_twin(server, line, case):
    line = line.beside(case + "-twin")
    ended = run(server, line, case + "-twin", None, None)
    found = [finding for finding in line.report()[1] if finding["severity"] != "note"]
    assert ended == [0] * RANKS and not found, "%s-twin: %s %s\n%s" % (case, ended, found, output(line.folder))
    print("%s-twin: no finding" % case, flush=True)


def main():
    with Line(sys.argv[1], devices=4, name="origins") as line, Server(line, RANKS, program="origins") as server:
        cases = sys.argv[2:] or CASES
        beside([(check, server, line, case) for case in cases] + [(check_twin, server, line, case) for case in cases])


if __name__ == "__main__":
    main()
