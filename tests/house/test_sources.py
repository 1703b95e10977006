"""Each rule that rests on NCCL, CUDA or PyTorch names the document or source file that it comes from, in a version that
docs/sources.md lists.

    test_sources.py [BUILD]    fails if a rule has no source, or a source no version
    test_sources.py --list     prints the source of every rule"""

import glob
import os
import re
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PAGE = "docs/sources.md"
LITERALS = r'(?:\s*(?:"(?:\\.|[^"\\])*"|[A-Z_]+))+'       # of C; names in capitals are macros
CHECK = re.compile(r"^const struct check check_(\w+) = \{(.*?)^\};", re.M | re.S)
# What a comment or a text says when it rests on a document.
CITES = re.compile(r"user guide|programming guide|CUDA runtime API, \"|NCCL's src/|\(src/\w+\.cc", re.I)
# The emulator's comments cite the documents of what they emulate: docs/emulator.md is their page.
CITING_ROOMS = ("analyzer", "interpose", "lib", "collector")
VARIABLE = re.compile(r"\b(?:NCCL|TORCH|CUDA)_[A-Z0-9_]+\b")
TEXTS = ("analyzer/checks/*/*.c", "analyzer/version_facts.def", "docs/*.md", "docs/findings/*.md", "docs/scenarios/*.md")
# Constants of nccl.h and of our own sources.
NO_VARIABLES = {"NCCL_SPLIT_NOCOLOR", "NCCL_SUCCESS", "NCCL_KNOWN"} | {
    "NCCL_" + name for name in ("IN_PROGRESS", "INVALID_USAGE", "INVALID_ARGUMENT", "COLLCONFIG_INITIALIZER", "WIN_COLL_SYMMETRIC")}


def read(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as file:
        return file.read()


def files(*patterns):
    for pattern in patterns:
        for path in sorted(glob.glob(os.path.join(ROOT, pattern), recursive=True)):
            yield os.path.relpath(path, ROOT)


def text_of(literals, macros):
    """What a row of C literals and names of macros says."""
    parts = re.findall(r'"((?:\\.|[^"\\])*)"|([A-Z_]+)', literals)
    return "".join(macros[name] if name else literal.replace('\\"', '"') for literal, name in parts)


def rows(title):
    """The cells of a table of the page."""
    section = read(PAGE).split("\n## %s\n" % title)[1].split("\n## ")[0]
    table = [line for line in section.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.strip("| ").split(" | ")] for line in table[2:]]


def check_rules():
    """(rule, its source or None) of each check; those about the trace itself are ddpcheck's own."""
    for path in files("analyzer/checks/*/*.c"):
        for name, fields in CHECK.findall(read(path)):
            if not path.startswith("analyzer/checks/trace/"):
                found = re.search(r"\.source =(%s)," % LITERALS, fields)
                yield "check " + name, text_of(found[1], {}) if found else None


def version_rules():
    text = read("analyzer/version_facts.def")
    macros = {name: text_of(value, {}) for name, value in re.findall(r'^#define (\w+)(?:\s|\\\n)+(".*")$', text, re.M)}
    for code, words in re.findall(r"^FACT\((\d+), \w+, \d+, \d+,(%s,%s)\)$" % (LITERALS, LITERALS), text, re.M):
        pieces = re.match(r"(%s),(%s)$" % (LITERALS, LITERALS), words)
        yield "version fact of DC" + code, text_of(pieces[2], macros)


def rules():
    yield from check_rules()
    yield from version_rules()
    for file, rule, source in rows("Rules outside of the checks"):
        yield "%s (%s)" % (rule, re.match(r"\[(.*?)\]", file)[1]), source
    for variable, _, source in rows("Variables"):
        yield variable, source


def is_document(part, documents):
    """In a version of its own, or one that the page lists."""
    return part.startswith(documents) or re.match(r"(NCCL|PyTorch|CUDA) \d+\.\d+ (user guide|documentation|source|src/)", part) or \
        part.startswith("src/")


def without_source():
    documents = tuple(row[0] for row in rows("Documents"))
    for rule, source in rules():
        if not source:
            yield "%s: no source" % rule
        for part in (source or "").split("; "):
            if source and not is_document(part, documents):
                yield "%s: '%s' names no document with its version of %s" % (rule, part, PAGE)


def uncited():
    """Files that rest on a document and are not in the page's table; a check's file has its check's source."""
    listed = {path for row in rows("Rules outside of the checks") for path in re.findall(r"\[(.*?)\]", row[0])}
    for path in files(*("%s/**/*.[ch]" % room for room in CITING_ROOMS)):
        text = read(path)
        if CITES.search(text) and path not in listed and not CHECK.search(text):
            yield "%s: it cites a document; %s has no row for it" % (path, PAGE)


def unknown_variables():
    listed = {name for row in rows("Variables") for name in re.findall(r"`(\w+)`", row[0])}
    seen = {}
    for path in files(*TEXTS):
        if path != PAGE:
            for name in VARIABLE.findall(read(path)):
                seen.setdefault(name, path)
    for name in sorted(set(seen) - listed - NO_VARIABLES):
        yield "%s: the variable %s has no row in %s" % (seen[name], name, PAGE)
    for name in sorted(listed - set(seen)):
        yield "%s: nothing names the variable %s any more" % (PAGE, name)


def main():
    if sys.argv[1:] == ["--list"]:
        for rule, source in rules():
            print("%s: %s" % (rule, source))
        return 0
    found = list(rules())
    assert len(found) > 80, "only %d rules were read" % len(found)
    assert len(list(version_rules())) == read("analyzer/version_facts.def").count("\nFACT("), "a version fact was not read"
    problems = [*without_source(), *uncited(), *unknown_variables()]
    print("\n".join(problems) or "%d rules, each with its source" % len(found))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
