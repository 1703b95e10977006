"""Real PyTorch DistributedDataParallel on NCCL, on the emulator: each faulty job gives its finding, each twin none.

test_ddp.py BUILD [CASE...]. Kernels of PyTorch do nothing there, so numbers mean nothing; who calls what, and who
waits for whom, is PyTorch's own."""

import os
import re
import sys

from cases import CASES, CAUSES, FIXES, LINES, OPERATIONS
from jobs import HERE, Line, Server, end_group, output, statuses, torch_folder, wait_for

RANKS = 3


def run(server, line, case):
    """Runs the job to its end, or until its hang is diagnosed; returns the ranks' exit statuses."""
    code, ranks, way = CASES[case]
    folder = os.path.join(line.folder, case)
    line.trace = os.path.join(folder, "trace")
    leader = server.start(case, folder, DDPCHECK_DIR=line.trace, DDPCHECK_HANG_AFTER="2")
    try:
        if way != "hang":
            return wait_for(lambda: statuses(folder), 300)
        wait_for(lambda: (code, ranks) in line.live_sides(), 300)
        wait_for(lambda: statuses(folder), 3)       # a second, wrong finding would show meanwhile
        return statuses(folder)
    finally:
        end_group(leader)
        line.wait_collector()


def check(server, line, case):
    code, ranks, way = CASES[case]
    ended = run(server, line, case)
    text = output(os.path.join(line.folder, case))
    if way == "ends":
        assert ended == [0] * RANKS, "%s: statuses %s\n%s" % (case, ended, text)
    if way == "fails":
        assert ended == [1] * RANKS and "modified by an inplace operation" in text, "%s: statuses %s\n%s" % (case, ended, text)
    findings = [finding for finding in line.report()[1] if finding["severity"] != "note"]
    told = [(finding["code"], [side["ranks"] for side in finding["sides"]]) for finding in findings]
    if code is None:
        assert told == [], "%s: expected nothing, got %s\n%s" % (case, told, text)
    else:
        assert [one[0] for one in told] == [code] and (ranks is None or ranks in told[0][1]), "%s: expected %s of rank %s, got %s\n%s" % (
            case, code, ranks, told, text)
    with open(os.path.join(HERE, "job.py")) as program:
        source = program.read().splitlines()
    likely = [(finding["cause"] or {}).get("what", "") for finding in findings]
    assert CAUSES.get(case, "") in "\n".join(likely), "%s: the likely cause is %s" % (case, likely)
    assert all(FIXES.get(case, "") in finding["todo"] for finding in findings), "%s: the fix is %s" % (case, findings)
    named = [source[frames[0]["line"] - 1].strip() for finding in findings for side in finding["sides"]
             if (frames := [frame for frame in side["frames"] if (frame["file"] or "").endswith("job.py")])]
    for place in LINES.get(case, []):
        assert any(place in name for name in named), "%s: no side stands at %s, but at %s" % (case, place, named)
    operations = [side["operation"] for finding in findings for side in finding["sides"]]
    assert all(name in operations for name in OPERATIONS.get(case, [])), "%s: made by %s" % (case, operations)
    if case in OPERATIONS:
        check_names(line, OPERATIONS[case])
    print("%s: %s" % (case, told or "no finding"), flush=True)


def check_names(line, operations):
    """Every view says in its sentence what of PyTorch made a call, before NCCL's name of it."""
    page = os.path.join(line.folder, "page.html")
    for command in (["report", line.trace], ["tui", "--once", line.trace], ["export", "--format", "html", "-o", page, line.trace]):
        status, out, err = line.call([line.tool, *command])
        if command[0] == "export":
            with open(page) as file:
                out = file.read()
        said = " ".join(out.replace("&#39;", "'").replace("&#x27;", "'").split())
        for name in operations:
            assert name + " [nccl" in said, (command, status, err, out)


def lines_of(text, source):
    """The lines of the list `text = [` of the program."""
    first = source.index(text + " = [") + 1
    return {number + 1 for number in range(first, source.index("]", first))}


def run_program(server, line, name, case):
    """Runs a case of the program NAME.py to its end, which must be a good one; returns its findings without notes, and its lines."""
    folder = os.path.join(line.folder, "%s-%s" % (name, case))
    line.trace = os.path.join(folder, "trace")
    leader = server.start(case, folder, program=name, DDPCHECK_DIR=line.trace)
    ended = wait_for(lambda: statuses(folder), 300)
    end_group(leader)
    line.wait_collector()
    assert ended == [0] * RANKS, (ended, output(folder))
    with open(os.path.join(HERE, name + ".py")) as program:
        source = program.read().splitlines()
    return [finding for finding in line.report()[1] if finding["severity"] != "note"], source


def check_operations(server, line, case):
    """A finding for each operation on a tensor that is still reduced, at its line; none where the program waits."""
    findings, source = run_program(server, line, "operations", case)
    expected = {("DC302", number) for name in ("READS", "READS_OF_HALF") for number in lines_of(name, source)}
    expected |= {("DC301", number) for number in lines_of("WRITES", source)}
    named = [(finding["code"], [frame["line"] for side in finding["sides"] for frame in side["frames"]
                                if (frame["file"] or "").endswith("operations.py")]) for finding in findings]
    told = {(code, number) for code, numbers in named for number in numbers if any(number == one for _, one in expected)}
    assert told == (expected if case == "early" else set()), "%s: missed %s, wrong %s" % (
        case, sorted(expected - told), sorted(told - expected) or named)
    print("operations, %s: %d findings" % (case, len(named)), flush=True)


def check_groups(server, line, case):
    """Groups that PyTorch splits off: the odd rank alone in its split is named, at its new_group and at that of its peer."""
    findings, source = run_program(server, line, "groups", case)
    told = [(finding["code"], [(side["ranks"], side["frames"][0]["line"]) for side in finding["sides"]]) for finding in findings]
    lines = [number for number, text in enumerate(source, 1) if "dist.new_group(" in text]
    expected = [("DC109", [("2", lines[0]), ("1", lines[2])])]
    assert told == (expected if case == "crossed" else []), told
    print("groups, %s: %s" % (case, told), flush=True)


def check_page():
    """docs/pytorch.md shows these cases."""
    with open(os.path.join(HERE, "..", "..", "docs", "pytorch.md")) as page:
        shown = dict(re.findall(r"^\| `([a-z-]+)` \|.*\| (DC\d+|nothing)[^|]*\|$", page.read(), re.M))
    expected = {case: code or "nothing" for case, (code, _, _) in CASES.items() if case != "twins"}
    assert shown == expected, "docs/pytorch.md shows %s" % shown


def main():
    check_page()
    torch_folder()
    with Line(sys.argv[1], devices=RANKS, name="torch") as line, Server(line, RANKS) as server:
        for case in sys.argv[2:] or CASES:
            check(server, line, case)
        for case in ("early", "waited", "shared"):
            check_operations(server, line, case)
        for case in ("crossed", "ordered"):
            check_groups(server, line, case)


if __name__ == "__main__":
    main()
