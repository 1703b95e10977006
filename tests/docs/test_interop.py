"""Every test that docs/interop.md names is there, and every row of its tables names one."""

import fnmatch
import os
import re
import subprocess
import sys

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")


def rows(text):
    """(the row's first cell, the names in the column "test", what that column says) of all tables."""
    column = None
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")] if line.startswith("|") else []
        if "test" in cells:
            column = cells.index("test")
        elif cells and column is not None and not set(cells[0]) <= set("- "):
            yield cells[0], re.findall(r"`([a-z0-9_*]+)`", cells[column]), cells[column]


def main():
    listed = subprocess.run(["ctest", "--test-dir", sys.argv[1], "-N"], capture_output=True, text=True, check=True).stdout
    tests = re.findall(r"^  Test +#\d+: (\S+)", listed, re.MULTILINE)
    with open(os.path.join(ROOT, "docs", "interop.md"), encoding="utf-8") as page:
        found = list(rows(page.read()))
    assert len(found) > 20, found
    for row, names, cell in found:
        assert names, "%s: no test is named (%s)" % (row, cell)
        for name in names:
            assert fnmatch.filter(tests, name), "%s: there is no test %s" % (row, name)


main()
