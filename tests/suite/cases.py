"""The cases of the suite, as their headers tell them (README.md): what is wrong, what must be found, and how to run it."""

import glob
import os
import re
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
CATEGORIES = ["match", "hang", "p2p", "hazard", "device", "training", "setup", "environment", "clean"]
KEYS = {"expect", "also", "ends", "options", "env", "devices", "minimal", "hang-after", "findings", "cause", "says", "fix", "origin", "headed"}
ENDS = {"yes", "hang", "error", "any"}


class BadCase(Exception):
    pass


class Expectation:
    """The one finding that a faulty program must give."""

    def __init__(self, text):
        words = text.split()
        if len(words) < 2 or words[1] not in ("certain", "possible"):
            raise BadCase("expect: CODE certain|possible [ranks=..] [place=..], not '%s'" % text)
        self.codes = words[0].split("|")
        self.certainty = words[1]
        fields = dict(word.split("=", 1) for word in words[2:])
        self.ranks = fields.pop("ranks", None)      # "0-2", or "0+1": a side each
        self.place = fields.pop("place", None)
        for code in self.codes:
            if not re.fullmatch(r"DC\d{3}", code):
                raise BadCase("'%s' is no code" % code)
        if fields:
            raise BadCase("expect: unknown " + ", ".join(fields))

    def __str__(self):
        return " ".join(["|".join(self.codes), self.certainty] + ["%s=%s" % (name, value) for name, value in
                        (("ranks", self.ranks), ("place", self.place)) if value])


def header_of(text, path):
    """The first comment (C) or docstring (Python), without its stars."""
    found = re.match(r'\s*/\*(.*?)\*/', text, re.S) if path.endswith(".c") else re.match(r'\s*"""(.*?)"""', text, re.S)
    if not found:
        raise BadCase("no header comment")
    return [re.sub(r"^\s*\*? ?", "", line).rstrip() for line in found.group(1).strip().splitlines()]


class Case:
    def __init__(self, path):
        self.path = path
        self.name = os.path.splitext(os.path.relpath(path, HERE))[0]       # "hazard/early_clear"
        self.category = os.path.dirname(self.name)
        self.python = path.endswith(".py")
        with open(path, encoding="utf-8") as file:
            self.text = file.read()
        self.about, fields = self.read_header()
        expect = fields.get("expect")
        if expect is None:
            raise BadCase("no 'expect:' in the header")
        self.expect = None if expect == "none" else Expectation(expect)
        if (self.expect is None) != (self.category == "clean"):
            raise BadCase("'expect: none' is for the category clean, and only for it")
        self.also = fields.get("also", "").replace("|", " ").split()
        self.ends = fields.get("ends", "yes")
        if self.ends not in ENDS:
            raise BadCase("ends: one of %s" % ", ".join(sorted(ENDS)))
        self.options = fields.get("options", "").split()
        self.environment = dict(word.split("=", 1) for word in fields.get("env", "").split())
        self.cause = fields.get("cause")
        self.says = fields.get("says")
        self.fix = fields.get("fix")
        self.origin = fields.get("origin", "").split(" .. ")
        self.headed = fields.get("headed")
        self.minimal = fields.get("minimal") == "yes"
        self.hang_after = float(fields.get("hang-after", 2))
        self.ranks, self.layout = self.read_layout()
        self.devices = int(fields.get("devices", self.ranks))
        self.findings = int(fields.get("findings", 1))
        self.has_twin = self.category != "clean"
        if self.has_twin and not re.search(r"\bTWIN\b", self.text):
            raise BadCase("no TWIN in the source")
        self.marked = [number for number, line in enumerate(self.text.splitlines(), 1)
                       if re.search(r"/\* here \*/|# here$", line)]
        if self.headed not in (None, "here"):
            raise BadCase("headed: here")
        if "here" in (self.headed, self.expect and self.expect.place) and not self.marked:
            raise BadCase("place=here or headed: here, but no line is marked")

    def read_header(self):
        about, fields = [], {}
        for line in header_of(self.text, self.path):
            found = re.match(r"([a-z-]+): (.*)$", line)
            if found and found.group(1) in KEYS:
                if found.group(1) in fields:
                    raise BadCase("'%s:' twice" % found.group(1))
                fields[found.group(1)] = found.group(2).strip()
            elif fields:
                raise BadCase("header: what is '%s'? Known: %s" % (line, ", ".join(sorted(KEYS))))
            else:
                about.append(line)
        return " ".join(about).strip(), fields

    def read_layout(self):
        if self.python:
            found = re.search(r"^suite\.start\(\w+, ranks=(\d+)[,)]", self.text, re.M)
            if not found:
                raise BadCase("no 'suite.start(function, ranks=N)'")
            return int(found.group(1)), "processes"
        found = re.search(r"^SUITE_CASE\((.*?)\);", self.text, re.M | re.S)
        ranks = found and re.search(r"\.ranks = (\d+)", found.group(1))
        layout = found and re.search(r"\.layout = (PROCESSES|THREADS|ALL)", found.group(1))
        if not ranks or not layout:
            raise BadCase("no SUITE_CASE(.run = .., .ranks = N, .layout = PROCESSES|THREADS|ALL)")
        return int(ranks.group(1)), layout.group(1).lower()

    def programs(self):
        """Names of its programs: (name, expected finding or None)."""
        return [(self.name, self.expect)] + ([(self.name + ".twin", None)] if self.has_twin else [])

    def command(self, program, build):
        twin = program.endswith(".twin")
        if self.python:
            return [sys.executable, self.path] + (["twin"] if twin else [])
        return [os.path.join(build, "tests", "suite", program)]

    def listing(self, build):
        """What another tool needs to run it and to be scored."""
        expect = self.expect and {"codes": self.expect.codes, "certainty": self.expect.certainty,
                                  "ranks": self.expect.ranks, "place": self.expect.place}
        if expect and expect["place"] == "here":
            expect["place"] = ["%s:%d" % (os.path.basename(self.path), line) for line in self.marked]
        return [{"program": program, "case": self.name, "category": self.category, "about": self.about,
                 "source": os.path.relpath(self.path, os.path.dirname(os.path.dirname(HERE))),
                 "command": self.command(program, build), "layout": self.layout, "ranks": self.ranks,
                 "devices": self.devices, "environment": self.environment, "ends": "yes" if wanted is None else self.ends,
                 "expect": wanted and expect} for program, wanted in self.programs()]


def load(names=()):
    """All cases, or those whose name begins with (or equals) one of the names; sorted by category."""
    cases, bad = [], []
    for category in CATEGORIES:
        for path in sorted(glob.glob(os.path.join(HERE, category, "*.c")) + glob.glob(os.path.join(HERE, category, "*.py"))):
            try:
                cases.append(Case(path))
            except BadCase as error:
                bad.append("%s: %s" % (os.path.relpath(path, HERE), error))
    if bad:
        raise BadCase("\n".join(bad))
    names = [name[:-5] if name.endswith(".twin") else name for name in names]
    chosen = [case for case in cases if not names or any(case.name == name or case.category == name or
                                                        os.path.basename(case.name) == name for name in names)]
    unknown = [name for name in names if not any(name in (case.name, case.category, os.path.basename(case.name)) for case in cases)]
    if unknown:
        raise BadCase("no case is called " + ", ".join(unknown))
    return chosen
