"""Samples in the form of what people posted: each names its thread, the verdict that helps, words that it must have, and what
could not be checked.

    # thread: owner/repository#number
    # expect: CODE RANKS RANKS...     an error or warning and its sides' ranks; * any, none: no rank is known. No line: no error
    # says: words of a finding, or of a note
    # unchecked: RANKS (SOURCE): LACK...     as `report` lists it; every rank that the log is about is in one of these lines

The score: useful (all that is expected, and no other error), nothing useful, wrong, refused. `test_real.py BUILD --unchecked` writes
the last kind of line into all samples: read the difference before you commit it."""

import collections
import glob
import json
import os
import re
import sys

from importer import Importer, main

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "real")


def read_sample(path):
    """The header, and the lines as bytes: some end in a carriage return or have colours."""
    with open(path, "rb") as file:
        lines = file.read().split(b"\n")
    header, begin = collections.defaultdict(list), 0
    while match := re.match(rb"# (thread|expect|says|unchecked): (.*)", lines[begin]):
        header[match.group(1).decode()].append(match.group(2).decode().rstrip("\r"))
        begin += 1
    return header, b"\n".join(lines[begin:])


class Real(Importer):
    def unchecked(self, database):
        """What report says that it could not check, a line for each source and its ranks."""
        report = self.ddpcheck("report", "--json", database)
        lines = collections.defaultdict(list)
        for line in map(json.loads, report.stdout.splitlines()):
            if line["schema"] == "ddpcheck.not-checked/1":
                lines["%s (%s)" % (line["ranks"] or "none", line["source"])].append(line["lacks"])
        return ["%s: %s" % (who, " ".join(lacks)) for who, lacks in sorted(lines.items())]

    def judge(self, path):
        """One of "useful", "nothing useful", "wrong", "refused", and why."""
        header, content = read_sample(path)
        self.assertTrue(header["thread"], path)
        result = self.importing(self.write(os.path.basename(path), content))
        if not os.path.exists(result.database):
            return "refused", result.err
        if self.unchecked(result.database) != header["unchecked"]:
            return "wrong", "not checked: %s" % self.unchecked(result.database)
        told = [finding for finding in result.findings if finding["severity"] != "note"]
        texts = " ".join(finding["what"] for finding in result.findings)
        missing = [words for words in header["says"] if words not in texts]
        if not header["expect"]:
            return ("wrong", told[0]["what"]) if told else ("nothing useful" if missing else "useful", "no word of %s" % missing)
        if not told:
            return "nothing useful", "no finding"
        for expected in header["expect"]:
            code, *ranks = expected.split()
            found = [[side["ranks"] for side in finding["sides"]] for finding in told if finding["code"] == code]
            if not found or (ranks != ["*"] and ranks not in found):
                return "wrong", "%s expected, told %s" % (expected, [(f["code"], [s["ranks"] for s in f["sides"]]) for f in told])
        if any(finding["code"] not in [line.split()[0] for line in header["expect"]] for finding in told):
            return "wrong", "more: %s" % texts
        return ("nothing useful", "no word of '%s' in %s" % (missing[0], texts)) if missing else ("useful", "")

    def test_score(self):
        score, wrong = collections.Counter(), []
        paths = sorted(glob.glob(os.path.join(FOLDER, "*.log")))
        for path in paths:
            verdict, why = self.judge(path)
            score[verdict] += 1
            if verdict != "useful":
                wrong.append("%s: %s: %s" % (os.path.basename(path), verdict, why))
        print("%d samples: %s" % (len(paths), json.dumps(score)))
        self.assertGreaterEqual(len(paths), 75)
        self.assertEqual(wrong, [], "\n".join(wrong))

    def test_the_same_whatever_is_around_the_lines(self):
        """What launchers, containers, services and terminals make of a line changes no verdict."""
        def findings(path):
            found = self.importing(path).findings
            return sorted((f["code"], [side["ranks"] for side in f["sides"]]) for f in found if f["severity"] != "note")
        around = list(AROUND.items())
        for number, path in enumerate(sorted(glob.glob(os.path.join(FOLDER, "*.log")))):
            lines = read_sample(path)[1].decode().rstrip("\n").split("\n")
            if os.path.basename(path) in ("wrapped-in-a-word.log", "containerd-parts.log") or any(set("\r\x1b") & set(line) for line in lines):
                continue    # nothing can stand in the middle of a line; the others have it already
            plain = findings(self.write("x.log", "\n".join(lines) + "\n"))
            for name, change in around[number % len(around)::len(around)]:
                text = "".join(change(at, line) + "\n" for at, line in enumerate(lines))
                with self.subTest(os.path.basename(path), around=name):
                    self.assertEqual(findings(self.write("x.log", text)), plain)


# What can stand around a line: (its number, the line) -> the line in the file.
AROUND = {
    "Windows": lambda at, line: line + "\r",
    "colours": lambda at, line: "\x1b[31m" + line + "\x1b[0m",
    "Docker": lambda at, line: json.dumps({"log": line + "\n", "stream": "stderr", "time": "2026-11-23T06:24:44.%09dZ" % at}),
    "Google Cloud": lambda at, line: json.dumps({"insertId": "x%d" % at, "textPayload": line}),
    "containerd": lambda at, line: "2026-11-23T06:24:44.%09dZ stderr F %s" % (at, line),
    "kubectl": lambda at, line: "[pod/job-0/main] " + line,
    "a logger": lambda at, line: "2026-11-23 06:24:44,%03d %s" % (at % 1000, line),
    "a mail": lambda at, line: "> " + line,
    "journald": lambda at, line: "Nov 23 06:24:44 node1 train[77]: " + line,
    "a progress bar": lambda at, line: " 10%%|#   | %d/100 [00:01<00:02]\r%s" % (at, line),
    "empty lines": lambda at, line: line + "\n",
    "line numbers": lambda at, line: "[%d] %s" % (1700 + at, line),
    "an editor": lambda at, line: "%4d\t%s" % (at + 1, line),
}


def write_unchecked():
    main.build = os.path.abspath(sys.argv[1])
    for path in sorted(glob.glob(os.path.join(FOLDER, "*.log"))):
        test = Real()
        test.setUp()
        header, content = read_sample(path)
        database = test.importing(test.write(os.path.basename(path), content)).database
        header["unchecked"] = test.unchecked(database) if os.path.exists(database) else []
        lines = ["# %s: %s\n" % (key, value) for key in ("thread", "expect", "says", "unchecked") for value in header[key]]
        with open(path, "wb") as file:
            file.write("".join(lines).encode() + content)
        test.doCleanups()


if __name__ == "__main__":
    write_unchecked() if sys.argv[2:] == ["--unchecked"] else main()
