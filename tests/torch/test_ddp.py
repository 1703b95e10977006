"""Real PyTorch DistributedDataParallel on NCCL, on the emulator: each faulty job gives its finding, each twin none.

test_ddp.py BUILD [CASE...]. Kernels of PyTorch do nothing there, so numbers mean nothing; who calls what, and who
waits for whom, is PyTorch's own."""

import os
import re
import sys

from cases import CASES, CASES_BEFORE_2_15, CAUSES, FIXES, HEADS, LINES, OPERATIONS, ORIGINS
from jobs import GOES_ON, HANGS, HERE, Line, Server, beside, end_group, output, statuses, torch_folder, torch_version, wait_for

RANKS = 3
# A collective takes 0.2 to 2 s, so that a busy machine does not see it done before the tensor is used: the tensors of job.py
# that are used too early have 256 KiB, those of the other programs 8 to 16 KiB.
SLOW_LINKS = {"DDPCHECK_EMU_LINK_RATE": "all=200K"}
SLOWER_LINKS = {"DDPCHECK_EMU_LINK_RATE": "all=40K"}


def expected_of(case):
    return (CASES if torch_version() >= (2, 15) else CASES_BEFORE_2_15)[case]


def run(server, line, case):
    """Runs the job to its end, or until its hang is diagnosed; returns the ranks' exit statuses."""
    code, ranks, way = expected_of(case)
    leader = server.start(case, line.folder, DDPCHECK_DIR=line.trace, DDPCHECK_HANG_AFTER=HANGS if way == "hang" else GOES_ON,
                          **(SLOW_LINKS if code in ("DC301", "DC302") else {}))
    try:
        if way != "hang":
            return wait_for(lambda: statuses(line.folder), 300)
        wait_for(lambda: (code, ranks) in line.live_sides(), 300)
        wait_for(lambda: statuses(line.folder), 3)       # a second, wrong finding would show meanwhile
        return statuses(line.folder)
    finally:
        end_group(leader)
        line.wait_collector()


def check(server, line, case):
    line = line.beside(case)
    code, ranks, way = expected_of(case)
    ended = run(server, line, case)
    text = output(line.folder)
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
    origins = [(finding["origin"] or {}).get("what", "") for finding in findings]
    assert ORIGINS.get(case, "") in "\n".join(origins), "%s: the origin is %s" % (case, origins)
    assert all(FIXES.get(case, "") in finding["todo"] for finding in findings), "%s: the fix is %s" % (case, findings)
    named = [source[frames[0]["line"] - 1].strip() for finding in findings for side in finding["sides"]
             if (frames := [frame for frame in side["frames"] if (frame["file"] or "").endswith("job.py")])]
    for place in LINES.get(case, []):
        assert any(place in name for name in named), "%s: no side stands at %s, but at %s" % (case, place, named)
    if case in HEADS:
        report = line.call([line.tool, "report", line.trace])[1]
        head = re.search(r"job\.py:(\d+): error " + code, report)
        assert head and source[int(head.group(1)) - 1].strip().startswith(HEADS[case]), "%s: headed otherwise\n%s" % (case, report)
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
    line = line.beside("%s-%s" % (name, case))
    leader = server.start(case, line.folder, program=name, DDPCHECK_DIR=line.trace, **SLOWER_LINKS)
    ended = wait_for(lambda: statuses(line.folder), 300)
    end_group(leader)
    line.wait_collector()
    assert ended == [0] * RANKS, (ended, output(line.folder))
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


def check_readme(line):
    """README shows the finding of evaluates.py as `report` prints it. Started as a user starts it: frames of launchers count."""
    line = line.beside("evaluates")
    torchrun = os.path.join(torch_folder(), "bin", "torchrun")
    line.run([torchrun, "--standalone", "--nproc_per_node", "4", os.path.join(HERE, "evaluates.py")], ("--timeout", "20"), 300,
             {"OMP_NUM_THREADS": "1"})
    said = line.call([line.tool, "report", line.trace])[1].replace(HERE, "tests/torch")
    with open(os.path.join(HERE, "..", "..", "README.md")) as page:
        shown = re.search(r"hangs after its first epoch.*?\n\n(.*?)\n\nIt runs on", page.read(), re.S)[1]
    shown, begun = (re.sub(r"#\d+ of comm [\w:]+", "# of comm", " ".join(text.split()))     # versions of PyTorch differ in both
                    for text in (shown, said[said.index("tests/torch/evaluates.py"):said.index("--verbose shows")]))
    assert shown == begun, said
    print("evaluates: README shows it", flush=True)


def check_page():
    """docs/pytorch.md shows these cases."""
    with open(os.path.join(HERE, "..", "..", "docs", "pytorch.md")) as page:
        shown = dict(re.findall(r"^\| `([a-z-]+)` \|.*\| (DC\d+|nothing)[^|]*\|$", page.read(), re.M))
    expected = {case: code or "nothing" for case, (code, _, _) in CASES.items() if case != "twins"}
    assert shown == expected, "docs/pytorch.md shows %s" % shown


def main():
    check_page()
    torch_folder()
    with Line(sys.argv[1], devices=4, name="torch") as line, Server(line, RANKS) as server:
        jobs = [(check, server, line, case) for case in sys.argv[2:] or CASES]
        jobs += [(check_operations, server, line, case) for case in ("early", "waited", "shared")]
        jobs += [] if sys.argv[2:] else [(check_readme, line)]
        beside(jobs + [(check_groups, server, line, case) for case in ("crossed", "ordered")])


if __name__ == "__main__":
    main()
