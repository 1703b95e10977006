"""Runs one program of the suite under `ddpcheck run` on the emulator and returns what was said about it."""

import calendar
import json
import os
import re
import selectors
import shutil
import signal
import sqlite3
import subprocess
import tempfile
import time

from sessions import end_session

GRACE_S = 0.8           # a second, wrong finding has this long to show after the first, while the job hangs
DEADLINE_S = 120        # for a program that neither ends nor is diagnosed
TOLD = re.compile(r"ddpcheck: (?:(\S+?): )?(?:possible )?(?:error|warning|note) (DC\d{3}): ")


def nanoseconds(moment):
    """Since 1970, of the report's "2026-11-21T14:03:22.418000000Z"; 0 for None."""
    if not moment:
        return 0
    seconds, fraction = moment.rstrip("Z").split(".")
    return calendar.timegm(time.strptime(seconds, "%Y-%m-%dT%H:%M:%S")) * 10**9 + int(fraction)


class Job:
    """One run. `told` are the codes in the order in which `ddpcheck run` said them, with the time."""

    def __init__(self, case, program, build):
        self.case, self.program, self.build = case, program, build
        self.tool = os.path.join(build, "bin", "ddpcheck")
        self.folder = tempfile.mkdtemp(prefix="ddpcheck-suite-")
        self.trace = os.path.join(self.folder, "trace")
        self.told, self.heads, self.output = [], [], []
        self.status = None          # exit status of the program, None if the runner had to end it
        self.late = False           # ended at the deadline

    def run(self, expect_finding):
        command = [self.tool, "run", "--emulate", str(self.case.devices), "--hang-after", "%g" % self.case.hang_after,
                   "-o", self.trace, *self.case.options, "--", *self.case.command(self.program, self.build)]
        process = subprocess.Popen(command, cwd=self.folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.STDOUT, start_new_session=True,
                                   env={**os.environ, **self.case.environment})
        try:
            self.watch(process, expect_finding)
        finally:
            if process.poll() is None:
                process.kill()
            end_session(process)
            process.stdout.close()
            process.wait()

    def watch(self, process, expect_finding):
        """Reads what the run says until it ends; ends it when it has said enough or takes too long."""
        give_up = time.monotonic() + DEADLINE_S
        ending = False
        with selectors.DefaultSelector() as selector:
            selector.register(process.stdout, selectors.EVENT_READ)
            rest = b""
            while True:
                if selector.select(timeout=max(0, min(give_up - time.monotonic(), 0.5))):
                    data = os.read(process.stdout.fileno(), 65536)
                    if not data:
                        break
                    *lines, rest = (rest + data).split(b"\n")
                    for line in lines:
                        if self.take(line.decode("utf-8", "replace")) and expect_finding and self.case.ends not in ("yes", "error"):
                            give_up = min(give_up, time.monotonic() + GRACE_S)
                if time.monotonic() >= give_up:
                    if ending:
                        return
                    self.late = not self.told
                    ending = True
                    process.send_signal(signal.SIGTERM)         # `ddpcheck run` hands it on to the job
                    give_up = time.monotonic() + 20
        status = process.wait()
        if not ending:
            self.status = status

    def take(self, line):
        found = TOLD.match(line)
        if found:
            self.told.append((found.group(2), time.time_ns()))
            self.heads.append((found.group(2), os.path.basename(found.group(1) or "")))
        self.output.append(line)
        return bool(found)

    def report(self):
        done = subprocess.run([self.tool, "report", "--json", "--hang-after", "%g" % self.case.hang_after, self.trace],
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=300, check=False)
        if done.returncode == 2:
            raise RuntimeError("ddpcheck report: " + done.stderr.strip())
        lines = [json.loads(line) for line in done.stdout.splitlines()]
        return [line for line in lines if line["schema"].startswith("ddpcheck.finding/")]

    def live(self):
        """Fingerprints of what the collector found while the job ran."""
        names = [name for name in os.listdir(self.trace) if name.endswith(".db")]
        connection = sqlite3.connect("file:%s?mode=ro" % os.path.join(self.trace, names[0]), uri=True, timeout=120)
        try:
            return sorted(f"{value & (1 << 64) - 1:016x}" for value, in connection.execute("SELECT fingerprint FROM finding"))
        finally:
            connection.close()

    def places(self, frames):
        """Function and file:line of the innermost frame that stands in the case itself."""
        source = os.path.basename(self.case.path)
        for frame in frames:
            if os.path.basename(frame["file"] or "") == source:
                return [frame["function"], "%s:%d" % (source, frame["line"])]
        return []

    def seconds(self, finding):
        """From the youngest piece of evidence that the finding shows to the moment at which it was told."""
        evidence = max([nanoseconds(side["since"]) for side in finding["sides"]], default=0)
        told = [when for code, when in self.told if code == finding["code"]]
        return max(0.0, (told[0] - evidence) / 1e9) if evidence and told else None

    def verdict(self):
        """The same thing that another tool hands in (README.md, "Scoring another tool")."""
        findings = [{"code": finding["code"], "severity": finding["severity"], "certainty": finding["certainty"],
                     "state": finding["state"], "what": finding["what"], "seconds": self.seconds(finding),
                     "sides": [{"ranks": side["ranks"], "places": self.places(side["frames"]) +
                                self.places(side["where_frames"])} for side in finding["sides"]]}
                    for finding in self.raw]
        return {"program": self.program, "status": self.status, "findings": findings}


def wrong_cause(case, findings):
    """What is wrong with the usual cause that the expected finding names as likely; None if it is the header's."""
    causes = [(finding["cause"] or {}).get("what") for finding in findings if finding["code"] in case.expect.codes]
    if all(case.cause in (cause or "") for cause in causes):
        return None
    return "should name the cause '%s', not %s" % (case.cause, causes)


def wrong_words(case, findings):
    """What is wrong with the words of the expected finding's sides; None if they are the header's."""
    said = ["; ".join(words for side in finding["sides"] for words in (side["call"], side["where"]) if words)
            for finding in findings if finding["code"] in case.expect.codes]
    if all(case.says in words for words in said):
        return None
    return "should say '%s': %s" % (case.says, said)


def wrong_head(case, heads):
    """What is wrong with the line that heads the expected finding as it is told live; None if it is one that is marked."""
    marked = ["%s:%d" % (os.path.basename(case.path), line) for line in case.marked]
    places = [place for code, place in heads if code in case.expect.codes]
    return None if all(place in marked for place in places) else "should be headed by %s, not %s" % (marked, places)


def wrong_fix(case, findings):
    """What is wrong with the fix of the expected finding; None if it has the header's words."""
    fixes = [finding["todo"] for finding in findings if finding["code"] in case.expect.codes]
    if all(case.fix in fix for fix in fixes):
        return None
    return "should advise '%s', not %s" % (case.fix, fixes)


def wrong_origin(case, expect, findings):
    """What is wrong with what findings name as their origin: the header's words for the expected one, and none else, but for the way
    that each side went at the finding's own call, which is a fact."""
    origins = [(finding["code"], finding["origin"]) for finding in findings]
    if expect and any(case.origin):
        said = [(origin or {}).get("what") or "" for code, origin in origins if code in case.expect.codes]
        return None if said and all(words in text for text in said for words in case.origin) else \
            "should begin with the origin %s, not %s" % (case.origin, said)
    claims = [origin["what"] for _, origin in origins if origin and origin["kind"] != "branch"]
    return "should name no origin, but says %s" % claims if claims else None


def run(case, program, expect, build, keep=False):
    """(verdict, what went wrong with the run itself or None, the job's output)."""
    job = Job(case, program, build)
    trouble = None
    try:
        job.run(expect is not None)
        job.raw = job.report()
        live, offline = job.live(), sorted(finding["fingerprint"] for finding in job.raw)
        if live != offline:
            trouble = "live findings %s differ from offline ones %s" % (live, offline)
        ends = case.ends if expect else "yes"
        if job.late and ends != "any":
            trouble = "did not end in %d s" % DEADLINE_S if ends != "hang" else None
        elif ends == "yes" and job.status != 0:
            trouble = "should end with status 0, " + ("but hangs" if job.status is None else "not %d" % job.status)
        elif ends == "hang" and job.status is not None:
            trouble = "should hang, but ended with status %d" % job.status
        elif ends == "error" and not job.status:
            trouble = "should end with an error, " + ("but hangs" if job.status is None else "not status 0")
        if expect and case.cause and not trouble:
            trouble = wrong_cause(case, job.raw)
        if expect and case.says and not trouble:
            trouble = wrong_words(case, job.raw)
        if expect and case.fix and not trouble:
            trouble = wrong_fix(case, job.raw)
        trouble = trouble or wrong_origin(case, expect, job.raw)
        if expect and case.headed and not trouble:
            trouble = wrong_head(case, job.heads)
        return job.verdict(), trouble, "\n".join(job.output)
    except (OSError, RuntimeError, ValueError, IndexError, sqlite3.Error, subprocess.TimeoutExpired) as error:
        return {"program": program, "status": None, "findings": []}, "%s: %s" % (type(error).__name__, error), "\n".join(job.output)
    finally:
        if not keep:
            shutil.rmtree(job.folder, ignore_errors=True)
