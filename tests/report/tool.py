"""Calls the built ddpcheck in a directory of its own with traces made by make_trace."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest


class Tool:
    def __init__(self, build):
        build = os.path.abspath(build)
        self.program = os.path.join(build, "bin", "ddpcheck")
        self.maker = os.path.join(build, "tests", "make_trace")
        self.folder = tempfile.mkdtemp(prefix="ddpcheck-report-")

    def close(self):
        shutil.rmtree(self.folder)

    def path(self, name):
        return os.path.join(self.folder, name)

    def make(self, situation, name=None):
        subprocess.run([self.maker, self.path(name or situation), situation], check=True)

    def situations(self):
        return subprocess.run([self.maker, "--list"], check=True, capture_output=True, text=True).stdout.split()

    def call(self, *arguments, stdout=subprocess.PIPE, **environment):
        """(status, stdout, stderr) of ddpcheck with these arguments, as on a plain 80-column pipe."""
        plain = {key: value for key, value in os.environ.items()
                 if key not in ("COLUMNS", "NO_COLOR", "FORCE_COLOR", "CLICOLOR_FORCE")}
        done = subprocess.run([self.program, *arguments], cwd=self.folder, stdin=subprocess.DEVNULL, stdout=stdout,
                              stderr=subprocess.PIPE, text=True, timeout=300, env={**plain, "TZ": "UTC", **environment})
        if done.returncode < 0:
            raise AssertionError("ddpcheck %s was killed by signal %d: %s" % (arguments, -done.returncode, done.stderr))
        return done.returncode, done.stdout, done.stderr

    def json(self, *arguments):
        """(status, JSON lines)."""
        status, out, err = self.call(*arguments, "--json")
        if err:
            raise AssertionError(err)
        return status, [json.loads(line) for line in out.splitlines()]


def main():
    """The tests of the program that was started: PROGRAM BUILD [--update] [TEST...]"""
    main.update = "--update" in sys.argv
    arguments = [argument for argument in sys.argv if argument != "--update"]
    main.build = arguments[1]
    unittest.main(module="__main__", argv=[arguments[0], *arguments[2:]])
