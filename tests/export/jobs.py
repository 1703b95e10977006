"""The traces that the tests of this directory export: of real jobs on emu, recorded once."""

import concurrent.futures
import json
import os

from line import Line

TRAINER = ["--model", "cnn", "--dataset-size", "64"]
HANG = [*TRAINER, "--ranks", "4", "--iterations", "12", "--no-gang", "--fault", "partial-barrier"]


class Jobs:
    """hang and again: rank 3 leaves out a barrier, recorded in two runs; clean: ends well."""

    def __init__(self, build):
        self.line = Line(build, name="export")
        self.tool, self.folder = self.line.tool, self.line.folder
        with concurrent.futures.ThreadPoolExecutor() as pool:
            runs = [pool.submit(self.record, "hang", HANG, ["--timeout", "10"]),
                    pool.submit(self.record, "again", HANG, ["--timeout", "10"]),
                    pool.submit(self.record, "clean", [*TRAINER, "--ranks", "2", "--iterations", "5"], [])]
            for run in runs:
                run.result()

    def record(self, name, arguments, options):
        status, out, err = self.line.call([self.tool, "run", "--emulate", "4", "-o", os.path.join(self.folder, name), *options,
                                           "--", self.line.trainer, *arguments], timeout=100)
        if not os.path.isdir(os.path.join(self.folder, name)):
            raise AssertionError("no trace of %s: status %d\n%s%s" % (name, status, out, err))

    def export(self, format, *arguments, status=0):
        """What `ddpcheck export` writes to standard output."""
        got, out, err = self.line.call([self.tool, "export", "--format", format, *arguments])
        assert got == status, "export %s: status %d, expected %d\n%s" % (format, got, status, err)
        return out

    def findings(self, trace):
        _, out, _ = self.line.call([self.tool, "report", "--json", trace])
        lines = [json.loads(line) for line in out.splitlines()]
        return [line for line in lines if line["schema"] == "ddpcheck.finding/1"]

    def close(self):
        self.line.__exit__(None, None, None)
