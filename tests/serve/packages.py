"""The Python that has what these tests need of pip: that of tools/setup-torch."""

import importlib.util
import os
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SKIPPED = 77


def need(*modules):
    """Goes on in that Python; ends the test as skipped where it is not installed or lacks a module."""
    found = subprocess.run([os.path.join(ROOT, "tools", "setup-torch"), "--find"], capture_output=True, text=True, timeout=300)
    prefix = found.stdout.strip()
    if prefix and os.path.realpath(sys.prefix) != os.path.realpath(prefix):
        python = os.path.join(prefix, "bin", "python3")
        os.execv(python, [python, *sys.argv])
    missing = [module for module in modules if not importlib.util.find_spec(module)]
    if missing:
        print("skipped: not installed: %s; tools/setup-torch installs it" % ", ".join(missing))
        sys.exit(SKIPPED)
