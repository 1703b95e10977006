"""Imports files with the built ddpcheck and reads what its report says."""

import datetime
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

DATA = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "data")


class Result:
    def __init__(self, status, out, err, findings, database):
        self.status, self.out, self.err, self.findings, self.database = status, out, err, findings, database

    def codes(self):
        """{code: ranks of the sides, most telling first} of the findings that are open."""
        return {finding["code"]: [side["ranks"] for side in finding["sides"]]
                for finding in self.findings if finding["state"] == "open"}

    def severity(self, code):
        return next(finding["severity"] for finding in self.findings if finding["code"] == code)

    def what(self, code):
        return next(finding["what"] for finding in self.findings if finding["code"] == code)

    def seconds(self, code):
        """From the finding's first time to its last."""
        first, last = next((finding["first"], finding["last"]) for finding in self.findings if finding["code"] == code)
        begin, end = (datetime.datetime.fromisoformat(time[:26]) for time in (first, last))
        return round((end - begin).total_seconds(), 1)


class Importer(unittest.TestCase):
    """A test case with a folder of its own."""

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="ddpcheck-import-")
        self.addCleanup(shutil.rmtree, self.folder)
        self.count = 0

    def ddpcheck(self, *arguments, **environment):
        done = subprocess.run([os.path.join(main.build, "bin", "ddpcheck"), *arguments], cwd=self.folder, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=120, env={**os.environ, "TZ": "UTC", **environment})
        self.assertGreaterEqual(done.returncode, 0, "ddpcheck %s was killed by signal %d: %s" %
                                (arguments, -done.returncode, done.stderr))
        return done

    def write(self, name, content):
        """A file with text, lines or bytes in it; returns its path."""
        path = os.path.join(self.folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        if isinstance(content, list):
            content = "".join(line + "\n" for line in content)
        with open(path, "wb") as file:
            file.write(content if isinstance(content, bytes) else content.encode())
        return path

    def data(self, name):
        return os.path.join(DATA, name)

    def importing(self, *paths, options=()):
        """Imports and reports. The findings are empty where there is no database."""
        self.count += 1
        database = os.path.join(self.folder, "imported-%d.db" % self.count)
        done = self.ddpcheck("import", *options, "-o", database, *paths)
        self.assertIn(done.returncode, (0, 2), done.stderr)
        findings = []
        if os.path.exists(database):
            report = self.ddpcheck("report", "--json", database)
            self.assertIn(report.returncode, (0, 1, 3), report.stderr)
            lines = [json.loads(line) for line in report.stdout.splitlines()]
            findings = [line for line in lines if line["schema"].startswith("ddpcheck.finding")]
        return Result(done.returncode, done.stdout, done.stderr, findings, database)


def main():
    main.build = os.path.abspath(sys.argv[1])
    unittest.main(module="__main__", argv=[sys.argv[0], *sys.argv[2:]])
