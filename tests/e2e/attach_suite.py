"""How often `ddpcheck attach` names the rank and line of a hang from stacks alone: every program of tests/suite/hang that hangs, started
without ddpcheck. Prints what is expected and what was found; docs/attach.md has the count.

attach_suite.py BUILD [PROGRAM.c...]"""

import concurrent.futures
import glob
import json
import os
import re
import subprocess
import sys
import time

from line import Line, end_group

BUILD = os.path.abspath(sys.argv[1])
HANG = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "suite", "hang")
UNTIL_HANG_S = 6    # what they do before takes a second; on a busy machine some more
AT_ONCE = 3


def found_in(path):
    """A name, what its header expects, what was found."""
    name = os.path.basename(path)[:-len(".c")]
    with open(path, encoding="utf-8") as file:
        expected = re.findall(r"expect: (.*)", file.read())
    with Line(BUILD, devices=8, name="attach") as line:
        environment = line.bare_environment()
        for variable in ("LD_PRELOAD", "DDPCHECK_DIR"):
            environment.pop(variable, None)
        job = subprocess.Popen([os.path.join(BUILD, "tests", "suite", "hang", name)], env=environment, cwd=line.folder,
                               stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
        try:
            time.sleep(UNTIL_HANG_S)
            _, out, _ = line.call([line.tool, "attach", "--json", str(job.pid)])
        finally:
            end_group(job)
    findings = [each for each in map(json.loads, out.splitlines()) if each.get("schema", "").startswith("ddpcheck.finding/")]
    return name, "; ".join(expected), ["%s: %s" % (each["code"], each["what"]) for each in findings]


def hangs():
    for path in sorted(glob.glob(os.path.join(HANG, "*.c"))):
        with open(path, encoding="utf-8") as file:
            if re.search(r"ends: hang", file.read()):
                yield path


def main():
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        for name, expected, found in pool.map(found_in, sys.argv[2:] or hangs()):
            print("%s\n    expected: %s\n    found:    %s" % (name, expected, "; ".join(found) or "nothing"), flush=True)


main()
