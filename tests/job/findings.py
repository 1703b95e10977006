"""What `ddpcheck report` says about a job, to compare a job on many hosts with the same on one."""

import json
import re
import subprocess
import tempfile

from hub import PATIENCE_S, await_true, read_file

ERROR = re.compile(r"^ddpcheck: (?:.+?: )?(?:possible )?error DC\d{3}: ", re.M)


def act_of(act):
    return (act["did"], (act["call"] or {}).get("function")) if act else None


def findings(ddpcheck, *arguments):
    """Each finding that is no note: code, certainty, fingerprint and, for each side, ranks, acts, phase and lines."""
    done = subprocess.run([ddpcheck, "report", "--json", *arguments], capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    return [(line["code"], line["certainty"], line["fingerprint"],
             [(side["ranks"], act_of(side["act"]), act_of(side["now"]), side["phase"], [frame["line"] for frame in side["frames"]])
              for side in line["sides"]])
            for line in lines if line["schema"] == "ddpcheck.finding/1" and line["severity"] != "note"]


class OneHost:
    """A job on one host, which is ended when its error is there."""

    def __init__(self, ddpcheck, trace, *program, devices):
        self.ddpcheck, self.trace = ddpcheck, trace
        self.output = tempfile.NamedTemporaryFile("w", prefix="ddpcheck-test-one-host-", encoding="utf-8")
        self.process = subprocess.Popen([ddpcheck, "run", "--emulate", str(devices), "-o", trace, "--", *program],
                                        stdout=self.output, stderr=self.output)

    def findings(self):
        await_true("an error on one host, or its end",
                   lambda: ERROR.search(read_file(self.output.name)) or self.process.poll() is not None)
        self.end()
        return findings(self.ddpcheck, self.trace)

    def end(self):
        if self.process.poll() is None:
            self.process.terminate()
        self.process.wait(PATIENCE_S)
