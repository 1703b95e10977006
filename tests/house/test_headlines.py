"""Each row of headlines.def and advice.def is used, and the rooms that were converted make no sentences of their own."""

import glob
import os
import re

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
# Not checks/hang: the steps of a cycle and the places of silent ranks are put together there.
CONVERTED = ("analyzer/checks/device", "analyzer/checks/hazard", "analyzer/checks/match", "analyzer/checks/speed",
             "analyzer/checks/trace", "analyzer/checks/training", "analyzer/hazard", "analyzer/speed")


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def sources(room):
    return glob.glob(os.path.join(ROOT, room, "**", "*.[ch]"), recursive=True)


def main():
    used = set(re.findall(r"\b(?:HEADLINE|ADVICE)_\w+", "".join(read(path) for room in ("analyzer", "cmd", "lib") for path in sources(room))))
    unused = []
    for kind in ("headlines", "advice"):
        rows = re.findall(r"^(HEADLINE|ADVICE)\((\w+),", read(os.path.join(ROOT, "lib/finding", kind + ".def")), re.MULTILINE)
        assert len(rows) > 50, kind + ".def was not read"
        unused += ["%s(%s" % row for row in rows if "_".join(row) not in used]
    assert not unused, "rows that no check uses: " + ", ".join(unused)
    composed = [os.path.relpath(path, ROOT) for room in CONVERTED for path in sources(room)
                if re.search(r"\btext_add\(", read(path))]
    assert not composed, "sentences belong to lib/finding/headlines.def: " + ", ".join(composed)


if __name__ == "__main__":
    main()
