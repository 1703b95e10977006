"""Every Python sample that a page calls faulty runs under PyTorch, on two emulated ranks, and does what the page says of it.

test_faulty.py BUILD [PAGE...]. The page's words after the sample are the expectation: "ddpcheck reports DC201.", "PyTorch
raises "...".", or another sentence where tests/docs/samples.py checks what the sample did."""

import os
import re
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "torch"))

from jobs import GOES_ON, HANGS, Line, Server, beside, end_group, output, statuses, torch_folder, wait_for  # noqa: E402

RANKS, SECONDS = 2, 120
DOCS = os.path.join(os.path.dirname(os.path.dirname(HERE)), "docs")


def results():
    """page: what it says happens."""
    found = {}
    for folder, _, names in sorted(os.walk(DOCS)):
        for name in sorted(names):
            if not name.endswith(".md"):
                continue
            with open(os.path.join(folder, name)) as page:
                for text in re.findall(r"^Faulty:\n\n```python\n.*?^```\n\n([^\n]*)$", page.read(), re.M | re.S):
                    assert name[:-3] not in found, "%s has two faulty samples" % name
                    found[name[:-3]] = text
    return found


def run(server, line, page, code):
    """Runs the sample to its end, or until it has a finding of this code; returns the ranks' exit statuses, None if they
    have not ended."""
    patience = HANGS if code and code.startswith(("DC1", "DC2")) else GOES_ON
    leader = server.start("faulty " + page, line.folder, DDPCHECK_DIR=line.trace, DDPCHECK_HANG_AFTER=patience)
    try:
        if not code:
            return wait_for(lambda: statuses(line.folder), SECONDS)
        wait_for(lambda: code in [each[0] for each in line.live_problems()], SECONDS)
        return statuses(line.folder)
    finally:
        end_group(leader)
        if code:
            line.wait_collector()


def check(server, line, page, result):
    code = re.match(r"ddpcheck reports (DC\d+)[.,]", result)
    raises = re.match(r"PyTorch raises \"(.*)\"\.$", result)
    line = line.beside(page)
    ended = run(server, line, page, code and code[1])
    text = output(line.folder)
    if code:
        found = [finding["code"] for finding in line.report()[1] if finding["severity"] != "note"]
        assert found == [code[1]], "%s: expected %s, got %s\n%s" % (page, code[1], found, text)
    elif raises:
        assert ended and any(ended) and raises[1] in text, "%s: statuses %s\n%s" % (page, ended, text)
    else:
        assert ended == [0] * RANKS, "%s: statuses %s\n%s" % (page, ended, text)
    print("%s: %s" % (page, result), flush=True)


def main():
    torch_folder()
    expected = results()
    assert expected, "no faulty sample was found"
    with Line(sys.argv[1], devices=RANKS, name="faulty") as line, Server(line, RANKS, "samples", HERE) as server:
        beside([(check, server, line, page, expected[page]) for page in sys.argv[2:] or expected])


if __name__ == "__main__":
    main()
