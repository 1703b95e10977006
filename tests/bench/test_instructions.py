"""test_instructions.py BUILD COMPILER VERSION TYPE [--update]: the instructions that the shim adds to twelve calls and more, as a table beside the
committed one, bench/instructions.csv. None may be over 5 % above it: what makes calls dearer is seen on the day on which it is made.

Instructions do not depend on the machine's load, but on the compiler and the kind of build: with another one than the table's nothing is decided."""

import csv
import os
import sys

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
sys.path.insert(0, os.path.join(ROOT, "bench"))
import run      # noqa: E402

TABLE = os.path.join(ROOT, "bench", "instructions.csv")
BOUND = 1.05
SKIPPED = 77


def committed():
    """(compiler, {name: [without stacks, with them]})"""
    with open(TABLE, newline="", encoding="utf-8") as file:
        head, *rows = csv.reader(file)
    return head[0], {name: [int(bare), int(stacked)] for name, bare, stacked in rows}


def main(build, compiler, update):
    counted, why = run.count_instructions(build)
    if why:
        print("skipped: " + why)
        return SKIPPED
    if update:
        with open(TABLE, "w", newline="", encoding="utf-8") as file:
            csv.writer(file, lineterminator="\n").writerows([[compiler, "no stacks", "stacks"]] + [[name, *now] for name, now in counted.items()])
    made_with, table = committed()
    print("%-50s %15s %15s" % ("instructions that the shim adds; now, committed", "no stacks", "stacks"))
    above = []
    for name, now in counted.items():
        then = table.get(name)
        print("%-50s" % name + "".join(" %7d %7s" % (now[i], then[i] if then else "-") for i in range(2)))
        if not then or any(now[i] > BOUND * then[i] for i in range(2)):
            above.append(name)
    if compiler != made_with:
        print("skipped: built by %s; the committed table is of %s" % (compiler, made_with))
        return SKIPPED
    if above or set(table) != set(counted):
        print("over 5 % above the committed table, or not in both: " + "; ".join(above or set(table) ^ set(counted)))
        print("if the calls are worth it: %s BUILD COMPILER VERSION TYPE --update" % sys.argv[0])
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], " ".join(sys.argv[2:5]), "--update" in sys.argv))
