"""Compares verdicts with what the headers expect, and prints the table. Knows nothing of ddpcheck itself."""

import os
import statistics

SERIOUS = ("error", "warning", None)        # a tool that does not grade its findings means them


class Tally:
    """One row of a table."""

    def __init__(self):
        self.cases = set()
        self.tp = self.fp = self.tn = self.fn = 0
        self.seconds = []

    def cells(self):
        precision = self.tp / (self.tp + self.fp) if self.tp + self.fp else None
        recall = self.tp / (self.tp + self.fn) if self.tp + self.fn else None
        f1 = 2 * precision * recall / (precision + recall) if precision and recall else None
        return ([str(n) for n in (len(self.cases), self.tp, self.fp, self.tn, self.fn)] +
                ["-" if value is None else "%.2f" % value for value in (precision, recall, f1)] +
                (["%.3f" % statistics.median(self.seconds), "%.3f" % max(self.seconds)] if self.seconds else ["-", "-"]))


def ranks_of(text):
    """{0, 1, 2, 5} of "0-2,5"; lists pass."""
    if not isinstance(text, str):
        return set(text or [])
    ranks = set()
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        if first.isdigit():
            ranks.update(range(int(first), int(last or first) + 1))
    return ranks


def place_matches(case, wanted, places):
    if wanted == "here":
        return any("%s:%d" % (os.path.basename(case.path), line) in places for line in case.marked)
    return wanted in places


def why_not(case, expect, finding):
    """None if the finding is the expected one, else what is different. What a tool leaves out is not compared."""
    if finding.get("code") is not None and finding["code"] not in expect.codes:
        return "is " + finding["code"]
    if finding.get("certainty") is not None and finding["certainty"] != expect.certainty:
        return "is " + finding["certainty"]
    sides = finding.get("sides")
    if sides is None:
        return None
    involved = sides
    if expect.ranks is not None:
        wanted = [ranks_of(part) for part in expect.ranks.split("+")]
        involved = [side for side in sides if ranks_of(side["ranks"]) in wanted]
        if any(all(ranks_of(side["ranks"]) != part for side in sides) for part in wanted):
            return "names the ranks %s" % ", ".join(sorted(str(side["ranks"]) for side in sides))
    if expect.place is not None and not any(place_matches(case, expect.place, side.get("places", [])) for side in involved):
        return "is at %s" % (", ".join(sorted({place for side in involved for place in side.get("places", [])})) or "no place")
    return None


class Score:
    """Takes verdicts one by one; `bad` counts what makes the suite fail."""

    def __init__(self):
        self.tables = {"certain": {}, "possible": {}}
        self.misses, self.wrong, self.possible, self.notes, self.troubles = [], [], [], [], []

    def row(self, certainty, category):
        return self.tables[certainty].setdefault(category, Tally())

    @property
    def bad(self):
        return len(self.misses) + len(self.wrong) + len(self.troubles)

    def add(self, case, program, expect, verdict, trouble=None):
        """`verdict` as in README.md; `expect` None: the program must be silent."""
        if trouble:
            self.troubles.append("%s: %s" % (program, trouble))
        group = case.expect.certainty if case.expect else "certain"
        self.row(group, case.category).cases.add(case.name)
        left = self.serious(case, program, expect, verdict)
        if expect:
            left = self.add_fault(case, program, expect, verdict, left)
        for finding in left:
            self.wrong.append("%s: %s %s: %s" % (program, finding.get("code", "a finding"), finding.get("certainty", ""),
                                                 finding.get("what", "")))
        if left:
            self.row(left[0].get("certainty") or "certain", case.category).fp += 1
        elif not expect and not trouble:
            self.row(group, case.category).tn += 1

    def serious(self, case, program, expect, verdict):
        """The findings that count; a twin must not show its fault even as a note."""
        own = expect.codes if expect else case.expect.codes if case.expect else []
        serious = []
        for finding in verdict["findings"]:
            if finding.get("code") in case.also:
                continue
            if finding.get("state") == "resolved":      # told, and taken back when a late rank came
                self.notes.append("%s: resolved %s %s" % (program, finding.get("code"), finding.get("what", "")))
            elif finding.get("severity") in SERIOUS or finding.get("code") in own:
                serious.append(finding)
            else:
                self.notes.append("%s: %s %s" % (program, finding.get("code"), finding.get("what", "")))
        return serious

    def add_fault(self, case, program, expect, verdict, findings):
        """Counts the fault as found or missed; returns the findings that are not it."""
        reasons = [why_not(case, expect, finding) for finding in findings]
        row = self.row(expect.certainty, case.category)
        if None not in reasons:
            row.fn += 1
            said = ["%s %s" % (finding.get("code"), reason) for finding, reason in zip(findings, reasons)]
            self.misses.append("%s: expected %s; %s" % (program, expect, "; ".join(said) or "nothing was found"))
            return [finding for finding in findings if finding.get("code") not in expect.codes]
        found = findings.pop(reasons.index(None))
        row.tp += 1
        if found.get("seconds") is not None:
            row.seconds.append(found["seconds"])
        if expect.certainty == "possible":
            self.possible.append("%s: %s" % (program, expect))
        if reasons.count(None) == case.findings:
            return [finding for finding in findings if why_not(case, expect, finding)]
        return findings

    def print_table(self, certainty, categories):
        rows = self.tables[certainty]
        if not rows:
            return
        total = Tally()
        for row in rows.values():
            total.cases |= row.cases
            for name in ("tp", "fp", "tn", "fn"):
                setattr(total, name, getattr(total, name) + getattr(row, name))
            total.seconds += row.seconds
        head = ["%s findings" % certainty, "cases", "TP", "FP", "TN", "FN", "precision", "recall", "F1", "median s", "max s"]
        lines = [head] + [[name] + rows[name].cells() for name in categories if name in rows] + [["all"] + total.cells()]
        for line in lines:
            print("%-18s %6s %5s %5s %5s %5s %10s %7s %6s %9s %8s" % tuple(line))
        print()

    def print(self, categories):
        for certainty in ("certain", "possible"):
            self.print_table(certainty, categories)
        for title, lines in (("missed", self.misses), ("wrongly found", self.wrong),
                             ("programs that did not behave as their header says", self.troubles),
                             ("found, as possible", self.possible), ("notes beside", self.notes)):
            if lines:
                print("%s:" % title)
                for line in lines:
                    print("  " + line)
