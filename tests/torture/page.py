"""docs/reliability.md: what a run of torture.py counted, and the faults of tried.txt.

page.py PAGE          puts the rows of tried.txt into the page, whose counts stay
page.py --check PAGE  exits with 1 if the page does not have them, or a fault of 1 to LAST has no row"""

import os
import sys

TRIED = os.path.join(os.path.dirname(os.path.abspath(__file__)), "tried.txt")
LAST = 28
COUNTED = """# Reliability

This page lists the faults that `make torture` injected into ddpcheck, how often, and what happened. The program
[tests/torture/torture.py](../tests/torture/torture.py) wrote it, after %d seconds with seed %d. The job of these rounds
counts its own calls in a mapped file, without ddpcheck; the rows of its trace are compared with that.

| what was done | how often | what happened |
| --- | --- | --- |
%s
`make test` runs a short form of it. What was lost in a round would end the run, so a row stands for rounds without such a loss.
Planted links, and each of these faults by itself, have tests of their own, in [tests/collector](../tests/collector) and [tests/interpose](../tests/interpose/test_odd.py).

"""
TITLE = "## Faults that were looked for\n"
LOOKED_FOR = TITLE + """
A review looked for ways in which ddpcheck harms a job, lets somebody in, or says nothing. The table says what was tried, what
happened before the repair, and what happens now, as measured on a machine of two cores with emulated GPUs. "Not measured" means
that the review reported the fault, but that nobody repeated this experiment with the old version. The rows are those of
[tests/torture/tried.txt](../tests/torture/tried.txt).

| | what was tried | before | now |
| --- | --- | --- | --- |
%s"""


def read_tried():
    with open(TRIED, encoding="utf-8") as file:
        return [line.rstrip("\n") for line in file if not line.startswith("#")]


def looked_for():
    return LOOKED_FOR % "".join("| %s |\n" % row for row in read_tried())


def write_page(path, seconds, seed, counted):
    with open(path, "w", encoding="utf-8") as file:
        file.write(COUNTED % (seconds, seed, counted) + looked_for())


def with_tried(page):
    """The page with these rows; what stands above them and the links to other pages below stay."""
    counted, _, rest = page.partition(TITLE)
    body, line, links = (rest or counted).partition("\n---\n")
    return (counted if rest else body + "\n") + looked_for() + line + links


def main():
    path = sys.argv[-1]
    with open(path, encoding="utf-8") as file:
        page = file.read()
    if sys.argv[1] != "--check":
        with open(path, "w", encoding="utf-8") as file:
            file.write(with_tried(page))
        return
    missing = set(range(1, LAST + 1)) - {int(row.split("|")[0]) for row in read_tried()}
    wrong = [row for row in read_tried() if row.count(" | ") != 3]
    if missing or wrong or page != with_tried(page):
        sys.exit("no row: %s; not four columns: %s; python3 tests/torture/page.py %s makes the page" % (missing, wrong, path))


if __name__ == "__main__":
    main()
