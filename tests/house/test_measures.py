"""Measures of names, words, layout and linking, each against a limit that it must not exceed.

    test_measures.py [BUILD]               compares every measure with its limit
    test_measures.py --list NAME [BUILD]   prints where the measure called NAME finds something

A measure only goes down: whoever improves one lowers its limit in LIMITS."""

import collections
import os
import re
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
ROOMS = ("abi", "analyzer", "bench", "cmd", "collector", "emu", "hub", "interpose", "kernels", "lib", "packaging", "trainer", "tui")

LIMITS = {
    "reused-names-percent": 1,      # functions whose file-local name occurs in a second file, of all functions; aim 5
    "reused-struct-tags": 0,        # aim 0
    "long-lines": 0,                # over 100 columns; aim 0
    "nested-conditionals": 0,       # expressions with two conditional operators; aim 0
    "no-first-sentence": 0,         # .c files that do not start with a comment; aim 0
    "long-files": 0,                # over 500 lines; aim 0
    "misnamed-checks": 0,           # checks that are not alone in a file of their name
    "words-in-names": 0,            # names with a word of WORDS; aim 0
    "words-in-texts": 0,            # strings and pages with a word of WORDS; aim 0
    "riddles-in-comments": 0,       # comments with a phrase of RIDDLES, tests included; aim 0
    "large-structs": 2,             # more than 40 members; aim 3: struct record, the emulator's properties
    "code-comparisons": 0,          # strings compared with a finding's code or state; aim 0
    "unexplained-thresholds": 13,   # enumerators with a unit in their name and no comment beside them; aim 0
    "short-files": 95,              # .c files of fewer than 60 lines; aim 70
    "functions-without-user": 12,   # external functions that no other file uses, or only tests; aim 0
}

# Not our words: CONTRIBUTING.md has what to use instead.
WORDS = ("mend", "mends", "mended", "told", "tell", "tells", "wish", "wishes", "wished", "parting", "partings", "ballot",
         "ballots", "operand", "operands", "incarnation", "incarnations")
PHRASES = ("kept quiet", "wrong use", "goes round", "in a circle")

# What has to be read twice: the noun is missing, or stands in another sentence.
RIDDLES = re.compile(r"\b(likewise|so many|so much more|of which|of whom|whoever|what there is|what there are|the one before|none of it"
                     r"|as well as ever)\b", re.I)
# A number with a unit that a rule of the analysis compares with; its comment stands behind it, or above it or its enum.
THRESHOLD = re.compile(r"^(?:\s*|enum \{ ?)([A-Z_]+_(?:PERCENT|TIMES|LEAST|MOST|ENOUGH|NS|US|MS|S)) = [^,}\n]*[^\n]*$", re.M)
COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.S)
# Entry points that are found by their name, by a loader or by libraries.
CALLED_BY_NAME = re.compile(r"^(cu|nccl|_|main|nvtx|ddpcheck_|la_|cupti|InitializeInjection|slurm_spank_|f?l?stat(at)?64|mknod|wait(3|4|id|pid)$)")

FUNCTION = re.compile(r"^(static )?(?:inline |const |unsigned |struct |enum |_Noreturn )*[\w]+[ *]+(\w+)\([^;{]*\)\s*\n?\{",
                      re.M)
NAME_OR_STRING = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\b[A-Za-z_]\w*\b', re.S)
FORBIDDEN = re.compile(r"\b(%s)\b" % "|".join(WORDS + PHRASES), re.I)


def tree(suffixes, rooms=ROOMS):
    """Path -> text of the files of the rooms, all paths below the root."""
    found = {}
    for room in rooms:
        for folder, _, names in os.walk(os.path.join(ROOT, room)):
            for name in sorted(names):
                path = os.path.join(folder, name)
                if name.endswith(suffixes):
                    with open(path, encoding="utf-8", errors="replace") as file:
                        found[os.path.relpath(path, ROOT)] = file.read()
    return found


def in_two_files(names):
    return ["%s: %s" % (name, " ".join(sorted(files))) for name, files in sorted(names.items()) if len(files) > 1]


def symbols(build):
    """Object file -> (kind, name) of its symbols, of all objects of the build but the suite's programs."""
    objects = [os.path.join(folder, name) for folder, _, names in os.walk(build) for name in names
               if name.endswith(".o") and "/tests/suite" not in folder]
    found = collections.defaultdict(list)
    for first in range(0, len(objects), 400):
        run = subprocess.run(["nm", "-A", *objects[first:first + 400]], capture_output=True, text=True, check=False)
        for line in run.stdout.splitlines():
            path, _, rest = line.partition(".o:")
            if len(rest.split()) >= 2:
                found[path + ".o"].append(tuple(rest.split()[-2:]))
    return found


class Measures:
    def __init__(self, build=None):
        self.build = build
        self.sources = tree((".c", ".h", ".cu", ".cuh"))
        self.tables = tree((".def",))
        self.pages = tree((".md",), ("docs",))
        for name in ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "SECURITY.md"):
            if os.path.exists(os.path.join(ROOT, name)):
                with open(os.path.join(ROOT, name), encoding="utf-8") as file:
                    self.pages[name] = file.read().split("\n## Words\n")[0]      # CONTRIBUTING's list of words to avoid

    def names(self, pattern, group):
        found = collections.defaultdict(set)
        for path, text in self.sources.items():
            for match in re.finditer(pattern, text):
                if match.group(1):
                    found[match.group(group)].add(path)
        return found

    def functions(self):
        return sum(len(FUNCTION.findall(text)) for text in self.sources.values())

    def reused_names_percent(self):
        return in_two_files(self.names(FUNCTION, 2))

    def reused_struct_tags(self):
        return in_two_files(self.names(re.compile(r"^struct (\w+) \{", re.M), 1))

    def long_lines(self):
        return ["%s:%d" % (path, number) for path, text in {**self.sources, **self.tables}.items()
                for number, line in enumerate(text.split("\n"), 1) if len(line) > 100]

    def nested_conditionals(self):
        return ["%s:%d" % (path, text.count("\n", 0, match.start()) + 1) for path, text in self.sources.items()
                for match in re.finditer(r"\?([^;?{}\"']*:[^;?{}\"']*)\?", text) if not self.has_outer_comma(match.group(1))]

    @staticmethod
    def has_outer_comma(text):
        """A comma that is in no parentheses of the text: what follows it is another argument."""
        depth = 0
        for letter in text:
            depth += {"(": 1, ")": -1}.get(letter, 0)
            if letter == "," and depth <= 0:
                return True
        return False

    def no_first_sentence(self):
        return [path for path, text in self.sources.items() if path.endswith(".c") and not text.lstrip().startswith("/*")]

    def long_files(self):
        return ["%s: %d lines" % (path, text.count("\n")) for path, text in self.sources.items() if text.count("\n") > 500]

    def misnamed_checks(self):
        return ["%s: check_%s" % (path, name) for path, text in self.sources.items()
                for name in re.findall(r"^const struct check check_(\w+) = ", text, re.M)
                if os.path.basename(path) != name + ".c"]

    def riddles_in_comments(self):
        files = {**self.sources, **self.tables, **tree((".c", ".h"), ("tests",))}
        return ["%s:%d: %s" % (path, text.count("\n", 0, comment.start() + riddle.start()) + 1, riddle.group())
                for path, text in files.items() for comment in COMMENT.finditer(text) for riddle in RIDDLES.finditer(comment.group())]

    def large_structs(self):
        found = []
        for path, text in self.sources.items():
            for match in re.finditer(r"^struct (\w+) \{\n(.*?)^\}", text, re.M | re.S):
                members = COMMENT.sub("", match.group(2)).split(";")
                plain = [re.sub(r"\([^()]*\)|\[[^\]]*\]", "", member) for member in members if member.strip() and "{" not in member]
                count = sum(member.count(",") + 1 for member in plain)
                if count > 40:
                    found.append("%s: struct %s, %d members" % (path, match.group(1), count))
        return found

    def code_comparisons(self):
        compared = re.compile(r'str(?:n?cmp|str)\([^;]*?"(?:DC\d*|resolved|possible|certain)"')
        return ["%s: %s" % (path, match.group()) for path, text in self.sources.items() if path.endswith(".c")
                for match in compared.finditer(text)]

    def unexplained_thresholds(self):
        found = []
        for path, text in self.sources.items():
            lines = text.split("\n")
            for match in THRESHOLD.finditer(text) if path.startswith("analyzer/") else ():
                at = text.count("\n", 0, match.start(1))
                above = at - (2 if "enum {" in lines[at - 1] else 1)
                if "/*" not in lines[at] + lines[at + 1] and "*/" not in lines[above]:
                    found.append("%s:%d: %s" % (path, at + 1, match.group(1)))
        return found

    def short_files(self):
        return [path for path, text in self.sources.items() if path.endswith(".c") and text.count("\n") < 60]

    def has_all(self):
        """Without CUDA's headers the build has no shim and no trainer, which use much of lib/."""
        return self.build and os.path.isdir(os.path.join(self.build, "interpose", "CMakeFiles", "ddpcheck_shim.dir"))

    def functions_without_user(self):
        users, home = collections.defaultdict(set), {}
        for path, found in symbols(self.build).items():
            for kind, name in found:
                if kind == "U" and "/tests/" not in path:
                    users[name].add(path)
                elif kind == "T" and "/tests/" not in path:
                    home[name] = path
        return ["%s: %s" % (os.path.relpath(path, self.build), name) for name, path in sorted(home.items())
                if not users[name] - {path} and not CALLED_BY_NAME.match(name) and "/emu" not in path and "/bench/" not in path]

    def tokens(self):
        for path, text in {**self.sources, **self.tables}.items():
            for match in NAME_OR_STRING.finditer(text):
                if not match.group().startswith("/"):
                    yield path, text, match

    def words_in_names(self):
        found = collections.defaultdict(set)
        for path, _, match in self.tokens():
            name = match.group()
            if not name.startswith('"') and not set(name.lower().split("_")).isdisjoint(WORDS):
                found[name].add(path)
        return ["%s: %s" % (name, " ".join(sorted(files))) for name, files in sorted(found.items())]

    def words_in_texts(self):
        found = ["%s:%d: %s" % (path, text.count("\n", 0, match.start()) + 1, match.group())
                 for path, text, match in self.tokens() if match.group().startswith('"') and FORBIDDEN.search(match.group())]
        return found + ["%s:%d: %s" % (path, number, line) for path, text in self.pages.items()
                        for number, line in enumerate(text.split("\n"), 1) if FORBIDDEN.search(line)]

    def found(self, name):
        return getattr(self, name.replace("-", "_"))()

    def value(self, name):
        found = self.found(name)
        if name == "reused-names-percent":
            places = sum(len(line.split(": ")[1].split()) for line in found)
            return round(100 * places / self.functions(), 1)
        return len(found)


def main():
    if sys.argv[1:2] == ["--list"]:
        print("\n".join(Measures(*sys.argv[3:4]).found(sys.argv[2])))
        return
    measures = Measures(*sys.argv[1:2])
    over = []
    for name, limit in LIMITS.items():
        if name == "functions-without-user" and not measures.has_all():
            continue
        value = measures.value(name)
        print("%-22s %6g   limit %g" % (name, value, limit))
        if value > limit:
            over.append(name)
    for name in over:
        found = measures.found(name)
        print("\n%s is over its limit. All of it: test_measures.py --list %s BUILD. The last of it:\n%s"
              % (name, name, "\n".join(found[-20:])))
    sys.exit(bool(over))


if __name__ == "__main__":
    main()
