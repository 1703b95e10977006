"""One line that does the same wrong with four datatypes is one fault: a line on stderr, a finding in the report, a row in the
terminal UI, a card on the page. --verbose and --json have each finding."""

import os
import re
import sys

from line import Line

PROGRAM = os.path.join("tests", "suite", "hazard", "shifted_in_every_datatype")


def main():
    with Line(sys.argv[1], devices=2, name="one-fault") as line:
        program = os.path.join(os.path.abspath(sys.argv[1]), PROGRAM)
        _, _, err = line.run([program], [])
        assert err.count("error DC304: ") == 1, err
        assert len(line.report()[1]) == 4, line.report()
        _, text, _ = line.call([line.tool, "report", line.trace])
        assert len(re.findall(r"error DC304:\s", text)) == 1, text
        assert "3 more findings at the same line, of ranks 0-1; --verbose shows each." in " ".join(text.split()), text
        _, text, _ = line.call([line.tool, "report", "--verbose", line.trace])
        assert len(re.findall(r"error DC304:\s", text)) == 4, text
        _, text, _ = line.call([line.tool, "tui", "--once", "--view", "findings", line.trace])
        assert len([row for row in text.splitlines() if "  DC304  " in row]) == 1, text
        _, text, err_export = line.call([line.tool, "export", "--format", "html", line.trace])
        assert text.count("<article class=error") == 1, (text.count("<article class=error"), err_export)
    print(err.splitlines()[0])


if __name__ == "__main__":
    main()
