"""Measures of names, words and layout, each against a limit that it must not exceed.

    test_measures.py [BUILD]       compares every measure with its limit
    test_measures.py --list NAME   prints where the measure called NAME finds something

A measure only goes down: whoever improves one lowers its limit in LIMITS."""

import collections
import os
import re
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
ROOMS = ("abi", "analyzer", "bench", "cmd", "collector", "emu", "hub", "interpose", "kernels", "lib", "packaging", "trainer", "tui")

LIMITS = {
    "reused-names-percent": 2,      # functions whose file-local name occurs in a second file, of all functions; aim 5
    "reused-struct-tags": 0,        # aim 0
    "long-lines": 0,                # over 100 columns; aim 0
    "nested-conditionals": 0,       # expressions with two conditional operators; aim 0
    "no-first-sentence": 0,         # .c files that do not start with a comment; aim 0
    "long-files": 0,                # over 500 lines; aim 0
    "misnamed-checks": 0,           # checks that are not alone in a file of their name
    "words-in-names": 0,            # names with a word of WORDS; aim 0
    "words-in-texts": 0,            # strings and pages with a word of WORDS; aim 0
}

# Not our words: CONTRIBUTING.md has what to use instead.
WORDS = ("mend", "mends", "mended", "told", "tell", "tells", "wish", "wishes", "wished", "parting", "partings", "ballot",
         "ballots", "operand", "operands", "incarnation", "incarnations")
PHRASES = ("kept quiet", "wrong use", "goes round", "in a circle")

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


class Measures:
    def __init__(self):
        self.sources = tree((".c", ".h", ".cu", ".cuh"))
        self.tables = tree((".def",))
        self.pages = tree((".md",), ("docs",))
        for name in ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md"):
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
                for match in re.finditer(r"\?[^;?{}\"']*:[^;?{}\"']*\?", text)]

    def no_first_sentence(self):
        return [path for path, text in self.sources.items() if path.endswith(".c") and not text.lstrip().startswith("/*")]

    def long_files(self):
        return ["%s: %d lines" % (path, text.count("\n")) for path, text in self.sources.items() if text.count("\n") > 500]

    def misnamed_checks(self):
        return ["%s: check_%s" % (path, name) for path, text in self.sources.items()
                for name in re.findall(r"^const struct check check_(\w+) = ", text, re.M)
                if os.path.basename(path) != name + ".c"]

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
    measures = Measures()
    if sys.argv[1:2] == ["--list"]:
        print("\n".join(measures.found(sys.argv[2])))
        return
    over = []
    for name, limit in LIMITS.items():
        value = measures.value(name)
        print("%-22s %6g   limit %g" % (name, value, limit))
        if value > limit:
            over.append(name)
    for name in over:
        found = measures.found(name)
        print("\n%s is over its limit. All of it: test_measures.py --list %s. The last of it:\n%s"
              % (name, name, "\n".join(found[-20:])))
    sys.exit(bool(over))


if __name__ == "__main__":
    main()
