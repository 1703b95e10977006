"""The runner itself: headers that it must refuse, verdicts that it must count right, and its list. test_runner.py BUILD"""

import json
import os
import subprocess
import sys
import tempfile

import cases as suite
import score

HERE = os.path.dirname(os.path.abspath(__file__))
GOOD = """/* Something is wrong.
 * expect: DC301 certain ranks=1 place=here
 * ends: hang */
static void wrong(struct rank *me) { f(); /* here */ }  /* TWIN */
SUITE_CASE(.run = wrong, .ranks = 4, .layout = THREADS);
"""


def case_of(text, category="hazard", name="case.c"):
    """A case with that text, as if it lay in the suite."""
    with tempfile.TemporaryDirectory() as folder:
        os.mkdir(os.path.join(folder, category))
        path = os.path.join(folder, category, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        before, suite.HERE = suite.HERE, folder
        try:
            return suite.Case(path)
        finally:
            suite.HERE = before


def refused(text, category="hazard"):
    try:
        case_of(text, category)
    except suite.BadCase:
        return True
    return False


def test_headers():
    case = case_of(GOOD)
    assert (case.name, case.ranks, case.layout, case.ends, case.marked) == ("hazard/case", 4, "threads", "hang", [4]), vars(case)
    assert case.about == "Something is wrong."
    assert [name for name, _ in case.programs()] == ["hazard/case", "hazard/case.twin"]
    for old, new in (("expect: DC301 certain", "expect: DC301"), ("DC301", "301"), (" /* here */", ""), ("/* TWIN */", ""),
                     ("ends: hang", "ends: sometimes"), ("ends: hang", "end: hang"), ("place=here", "place=here line=3"),
                     ("THREADS", "FIBRES"), (" * expect: DC301 certain ranks=1 place=here\n", "")):
        assert old in GOOD and refused(GOOD.replace(old, new)), (old, new)
    assert refused(GOOD, "clean"), "a clean case expects none"
    assert not refused(GOOD.replace("DC301 certain ranks=1 place=here", "none"), "clean")


def count(text, verdicts, category="hazard"):
    """(tp, fp, tn, fn, lines about what is bad) for [verdict of the fault, verdict of the twin]."""
    case, result = case_of(text, category), score.Score()
    for (program, expect), findings in zip(case.programs(), verdicts):
        result.add(case, program, expect, {"program": program, "findings": findings})
    sums = [sum(getattr(row, name) for table in result.tables.values() for row in table.values()) for name in ("tp", "fp", "tn", "fn")]
    return sums, len(result.misses), len(result.wrong)


def finding(**other):
    return {"code": "DC301", "certainty": "certain", "severity": "error",
            "sides": [{"ranks": "1", "places": ["wrong", "case.c:4"]}, {"ranks": "0,2-3", "places": []}], **other}


def test_scores():
    right = finding()
    assert count(GOOD, [[right], []]) == ([1, 0, 1, 0], 0, 0)
    assert count(GOOD, [[], []]) == ([0, 0, 1, 1], 1, 0)
    assert count(GOOD, [[right], [right]]) == ([1, 1, 0, 0], 0, 1)
    assert count(GOOD, [[right, finding(code="DC102")], []]) == ([1, 1, 1, 0], 0, 1)
    assert count(GOOD, [[right, right], []]) == ([1, 1, 1, 0], 0, 1), "one fault, one finding"
    two = GOOD.replace(" * expect:", " * findings: 2\n * expect:")
    below = finding(sides=[{"ranks": "1", "places": ["wrong", "case.c:5"]}])
    assert count(two, [[below, below], []]) == ([1, 0, 1, 0], 0, 0)
    assert count(two, [[below, below, below], []]) == ([1, 1, 1, 0], 0, 2)
    assert count(two, [[below], []]) == ([1, 0, 1, 0], 0, 0)
    assert count(GOOD, [[finding(certainty="possible")], []]) == ([0, 0, 1, 1], 1, 0)
    assert count(GOOD, [[finding(code="DC102")], []]) == ([0, 1, 1, 1], 1, 1)
    assert count(GOOD, [[finding(state="resolved")], []]) == ([0, 0, 1, 1], 1, 0)
    assert count(GOOD, [[finding(sides=[{"ranks": "0-1", "places": ["case.c:4"]}])], []])[0] == [0, 0, 1, 1]
    assert count(GOOD, [[finding(sides=[{"ranks": "1", "places": ["case.c:5"]}])], []])[0] == [0, 0, 1, 1]
    assert count(GOOD, [[finding(sides=[{"ranks": "1", "places": []}, {"ranks": "0", "places": ["case.c:4"]}])], []])[0] == [0, 0, 1, 1]
    assert count(GOOD, [[{}], []])[0] == [1, 0, 1, 0], "what a tool leaves out is not compared"
    two = GOOD.replace("ranks=1 place=here", "ranks=1+0,2-3")
    assert count(two, [[right], []])[0] == [1, 0, 1, 0]
    assert count(two.replace("0,2-3", "0-3"), [[right], []])[0] == [0, 0, 1, 1]
    assert count(GOOD.replace("DC301 certain", "DC102|DC301 certain"), [[right], []])[0] == [1, 0, 1, 0]


def test_notes():
    note = finding(code="DC602", severity="note")
    assert count(GOOD, [[finding(), note], [note]]) == ([1, 0, 1, 0], 0, 0), "notes are listed apart"
    about_notes = GOOD.replace("DC301", "DC602")
    assert count(about_notes, [[note], []])[0] == [1, 0, 1, 0]
    assert count(about_notes, [[note], [note]])[0] == [1, 1, 0, 0], "a twin must not show its fault even as a note"
    clean = GOOD.replace("DC301 certain ranks=1 place=here", "none")
    assert count(clean, [[]], "clean")[0] == [0, 0, 1, 0]
    assert count(clean, [[finding(certainty="possible")]], "clean")[0] == [0, 1, 0, 0]


def run(build, *arguments):
    done = subprocess.run([sys.executable, os.path.join(HERE, "run.py"), "--build", build, *arguments], capture_output=True,
                          text=True, timeout=300, check=False)
    return done.returncode, done.stdout, done.stderr


def perfect(entry):
    """The verdict of a tool that finds just what is expected."""
    wanted = entry["expect"]
    if not wanted:
        return {"program": entry["program"], "findings": []}
    place = wanted["place"] if isinstance(wanted["place"], list) else [wanted["place"]] if wanted["place"] else []
    sides = [{"ranks": ranks, "places": place} for ranks in (wanted["ranks"] or "0").split("+")]
    return {"program": entry["program"], "findings": [{"code": wanted["codes"][0], "certainty": wanted["certainty"],
                                                       "seconds": 0.5, "sides": sides}]}


def test_another_tool(build):
    """From --list to --score, by a tool that knows everything, one that knows nothing, and one that makes things up."""
    status, out, err = run(build, "--list")
    assert status == 0, err
    entries = json.loads(out)
    assert all(os.access(entry["command"][0], os.X_OK) for entry in entries), "programs that are not built"
    faulty = [entry for entry in entries if entry["expect"]]
    assert len(faulty) >= 40 and len({entry["program"] for entry in entries}) == len(entries)
    with tempfile.TemporaryDirectory() as folder:
        def scored(verdicts):
            path = os.path.join(folder, "verdicts.json")
            with open(path, "w", encoding="utf-8") as file:
                json.dump(verdicts, file)
            return run(build, "--score", path)
        verdicts = [perfect(entry) for entry in entries]
        status, out, err = scored(verdicts)
        assert status == 0 and "1.00    1.00   1.00" in out and "missed" not in out, out + err
        status, out, _ = scored([{**verdict, "findings": []} for verdict in verdicts])
        assert status == 1 and out.count(": expected DC") == len(faulty), out
        status, out, _ = scored([{**verdict, "findings": [{"what": "?"}]} for verdict in verdicts])
        assert status == 1 and "missed" not in out and out.count(": a finding") == len(entries) - len(faulty), out
        status, out, _ = scored(verdicts[1:])
        assert status == 1 and verdicts[0]["program"] + ": no verdict" in out, out
        status, _, err = scored(verdicts + [{"program": "hazard/unheard_of", "findings": []}])
        assert status == 2 and "hazard/unheard_of" in err, err
    assert run(build, "no/such_case")[0] == 2


def main():
    test_headers()
    test_scores()
    test_notes()
    test_another_tool(os.path.abspath(sys.argv[1]))
    print("ok")


if __name__ == "__main__":
    main()
