"""A rank that is silent for longer than --hang-after is reported as possible, which does not end a job under --on-finding
abort; when it comes, the finding is withdrawn on stderr. So is that a rank makes the others wait, when more iterations do not
show it; where they do, it stays."""

import os
import subprocess
import sys
import threading

from line import Line

ALWAYS_LATE = os.path.join("tests", "suite", "training", "always_late")
PATIENCE = 300
SEEN = (("possible error DC201: ", "silence_seen"),         # what stderr says, and the file that tells late.c to go on
        (" DC601: rank 1 ", "lateness_seen"),
        ("DC601 is withdrawn: rank 1 ", "withdrawal_seen"))


def run_late(line):
    """late.c, which goes on as soon as what it does has been said: (status, stderr)."""
    command = [line.tool, "run", "--emulate", "3", "-o", line.trace, "--hang-after", "0.5", "--on-finding", "abort", "--",
               os.path.join(line.build, "tests", "late")]
    said, left = [], list(SEEN)
    with subprocess.Popen(command, env={**os.environ, "LATE_FOLDER": line.folder}, stdin=subprocess.DEVNULL,
                          stderr=subprocess.PIPE, text=True) as job:
        watchdog = threading.Timer(PATIENCE, job.terminate)
        watchdog.start()
        for text in job.stderr:
            said.append(text)
            if left and left[0][0] in text:
                open(os.path.join(line.folder, left.pop(0)[1]), "w", encoding="ascii").close()
        watchdog.cancel()
    assert not left, ("".join(said), "not said", left)
    return job.returncode, "".join(said)


def slow_hosts(line):
    """Whether DC601 stands in the report, by rank."""
    return {each["sides"][0]["ranks"]: each.get("state") != "resolved" for each in line.report()[1] if each["code"] == "DC601"}


def check_always_late(build):
    with Line(build, devices=3, name="slow") as line:
        status, _, err = line.run([os.path.join(line.build, ALWAYS_LATE)])
        assert status == 0 and slow_hosts(line)["1"] and "DC601 is withdrawn: rank 1 " not in err, (status, err)


def main():
    check_always_late(sys.argv[1])
    with Line(sys.argv[1], devices=3, name="withdrawn") as line:
        status, err = run_late(line)
        assert status == 0 and not slow_hosts(line)["1"], (status, err)
        lines = err.splitlines()
        at = [i for i, text in enumerate(lines) if ": possible error DC201: " in text]
        assert len(at) == 1 and "late.c:" in lines[at[0]].split(": possible")[0], err
        details = lines[at[0] + 1:at[0] + 4]        # where the other rank is, what to do, where to read more
        assert [text[:text.index(":") + 1].strip() for text in details][1:] == ["fix:", "see:"], err
        assert details[0].startswith("          rank ") and details[2].endswith("ddpcheck report " + line.trace), err
        assert err.count("see: ddpcheck report") == 1, err
        assert any("DC201 is withdrawn: " in text for text in lines[at[0] + 4:]), err
        assert "ending the job" not in err and "no finding" in lines[-1], err
    print(lines[at[0]])


if __name__ == "__main__":
    main()
