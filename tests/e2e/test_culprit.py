"""Who the others wait for is placed on one line everywhere: rank, host, GPU, process, line, how long; of a rank that crashed, after
which line. Its line is the location in SARIF and of an annotation on GitHub."""

import json
import os
import re
import socket
import sys

from line import Line

ASLEEP = r"rank 0 \(%s, GPU 0, pid \d+\) is in suite_nap_ms\(\) \S*?(\w+\.c):(\d+), \d"
CRASHED = r"rank 1 \(%s, GPU 1, pid \d+\) (?:was killed by SIG\w+|is gone \(.*\)) after crashed\(\) \S*?(\w+\.c):(\d+)"


def export(line, form):
    path = os.path.join(line.folder, form)
    line.call([line.tool, "export", "--format", form, "-o", path, line.trace])
    with open(path) as file:
        return file.read()


def check(build, program, devices, pattern):
    pattern = re.compile(pattern % re.escape(socket.gethostname()))
    with Line(build, devices=devices, name="culprit") as line:
        _, _, err = line.run([os.path.join(build, "tests", "suite", "hang", program)], ["--hang-after", "1", "--timeout", "4"])
        assert pattern.search(err), err
        _, report, _ = line.call([line.tool, "report", line.trace])
        found = pattern.search(" ".join(report.split()))
        assert found, report
        junit, github = export(line, "junit"), export(line, "github")
        assert pattern.search(junit) and pattern.search(github), (junit, github)
        assert "%s,line=%s," % found.groups() in github, github
        result = json.loads(export(line, "sarif"))["runs"][0]["results"][0]
        place = result["locations"][0]["physicalLocation"]
        assert place["artifactLocation"]["uri"].endswith(found.group(1)), place
        assert place["region"]["startLine"] == int(found.group(2)), (place, found.group(0))
        victims = [place["message"]["text"] for place in result["relatedLocations"]]
        assert any(text.startswith("rank") and "nccl" in text for text in victims), victims


def check_folded(build):
    """Two communicators with one rank asleep in each: the finding that is shown names the other's, too."""
    with Line(build, devices=8, name="culprit") as line:
        line.run([os.path.join(build, "tests", "suite", "hang", "asleep_in_two_subgroups")], ["--hang-after", "1", "--timeout", "4"])
        _, report, _ = line.call([line.tool, "report", line.trace])
        report = " ".join(report.split())
        assert any("The same on 1 more communicator, of ranks %s: rank %d never called it." % other in report
                   for other in (("4-7", 6), ("0-3", 1))), report


def main():
    build = os.path.abspath(sys.argv[1])
    check_folded(build)
    check(build, "rank_asleep", 4, ASLEEP)
    check(build, "crashed", 2, CRASHED)


if __name__ == "__main__":
    main()
