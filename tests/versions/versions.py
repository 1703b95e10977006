"""The versions that ddpcheck is tested with: table.txt, and the table of docs/interop.md that is made of it.

versions.py --check: fails if the page's table is another one (the test `versions_table`). --write: writes it. --new: asks pip which
newer releases there are, and fails if table.txt lacks one. Standard library only."""

import os
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
PAGE = os.path.join(HERE, "..", "..", "docs", "interop.md")
HEAD = "| package | version | last run | test |\n| --- | --- | --- | --- |\n"
TITLE = "## Versions\n"


def rows():
    """[(package, version, what is installed beside it, date of the last run, tests)], newest first of each package."""
    with open(os.path.join(HERE, "table.txt"), encoding="utf-8") as file:
        lines = [line.split() for line in file if line.strip() and not line.startswith("#")]
    assert all(len(line) == 5 for line in lines), [line for line in lines if len(line) != 5]
    return [tuple(line) for line in lines]


def numbers(version):
    return tuple(int(part) for part in re.findall(r"\d+", version))


def page_table():
    return HEAD + "".join("| %s | %s | %s | %s |\n" % (
        package, version, ran, ", ".join("`%s`" % test for test in tests.split(","))) for package, version, _, ran, tests in rows())


def split_page():
    """The page before, in and behind the table."""
    with open(PAGE, encoding="utf-8") as file:
        text = file.read()
    begin = text.index("| package |", text.index(TITLE))
    end = re.compile(r"^(?!\|)", re.M).search(text, begin).start()
    return text[:begin], text[begin:end], text[end:]


def check():
    _, found, _ = split_page()
    if found != page_table():
        sys.exit("docs/interop.md has another table than tests/versions/table.txt: python3 tests/versions/versions.py --write")
    for package in {row[0] for row in rows()}:
        versions = [numbers(row[1]) for row in rows() if row[0] == package]
        assert versions == sorted(versions, reverse=True), "%s: the newest comes first" % package
    print("%d versions" % len(rows()))


def write():
    before, _, behind = split_page()
    with open(PAGE, "w", encoding="utf-8") as file:
        file.write(before + page_table() + behind)


def released(package):
    """What pip can install; [] where it can't say."""
    done = subprocess.run([sys.executable, "-m", "pip", "index", "versions", package], capture_output=True, text=True, timeout=120)
    found = re.search(r"^Available versions: (.*)$", done.stdout, re.M)
    return found.group(1).split(", ") if found else []


def new():
    missing = False
    for package in dict.fromkeys(row[0] for row in rows() if row[0] != "python"):
        known = max(numbers(row[1]) for row in rows() if row[0].partition("-cu")[0] == package.partition("-cu")[0])
        versions = released(package)
        newer = [version for version in versions if numbers(version) > known]
        missing = missing or bool(newer)
        print("%s: %s" % (package, "not in tests/versions/table.txt: " + ", ".join(newer) if newer else
                          "no newer release" if versions else "pip can't say"))
    sys.exit(missing)


if __name__ == "__main__":
    {"--check": check, "--write": write, "--new": new}[sys.argv[1]]()
