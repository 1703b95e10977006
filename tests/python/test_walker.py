"""The shim's reader of Python frames against each Python's own word."""

import os
import subprocess
import sys

from pythons import pythons


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    walker = os.path.join(sys.argv[1], "tests", "python", "python_walker.so")
    found = pythons()
    assert found, "no CPython of a known version"
    for python in found:
        done = subprocess.run([python, os.path.join(here, "check_walker.py"), walker, "4"], capture_output=True, text=True,
                              check=False, timeout=120)
        assert done.returncode == 0, "%s: status %d\n%s%s" % (python, done.returncode, done.stdout, done.stderr)
        print(done.stdout.strip())


if __name__ == "__main__":
    main()
