"""A rank that is late for longer than --hang-after is reported as possible, which does not end a job under --on-finding
abort; when it comes, the finding is withdrawn on stderr. So is that a rank makes the others wait, when more iterations do not
show it; where they do, it stays."""

import os
import sys

from line import Line

SUITE = os.path.join("tests", "suite")
PROGRAM = os.path.join(SUITE, "clean", "rank_is_very_late")
LATE_AT_FIRST = os.path.join(SUITE, "clean", "rank_is_late_at_first")
ALWAYS_LATE = os.path.join(SUITE, "training", "always_late")


def slow_hosts(build, program):
    """What was said while the program ran, and whether DC601 stands in the report, by rank."""
    with Line(build, devices=3, name="slow") as line:
        status, _, err = line.run([os.path.join(os.path.abspath(build), program)])
        assert status == 0, (status, err)
        return err, {each["sides"][0]["ranks"]: each.get("state") != "resolved" for each in line.report()[1] if each["code"] == "DC601"}


def check_slow_host(build):
    err, found = slow_hosts(build, LATE_AT_FIRST)
    said = [err.find(text) for text in (" note DC601: rank 1 ", "DC601 is withdrawn: rank 1 ")]
    assert 0 <= said[0] < said[1] and not found["1"], (found, err)
    err, found = slow_hosts(build, ALWAYS_LATE)
    assert found["1"] and "DC601 is withdrawn: rank 1 " not in err, (found, err)


def main():
    check_slow_host(sys.argv[1])
    with Line(sys.argv[1], devices=3, name="withdrawn") as line:
        program = os.path.join(os.path.abspath(sys.argv[1]), PROGRAM)
        status, _, err = line.run([program], ["--hang-after", "0.5", "--on-finding", "abort"])
        assert status == 0, (status, err)
        lines = err.splitlines()
        at = [i for i, text in enumerate(lines) if ": possible error DC201: " in text]
        assert len(at) == 1 and "rank_is_very_late.c:" in lines[at[0]].split(": possible")[0], err
        details = lines[at[0] + 1:at[0] + 4]        # where the other rank is, what to do, where to read more
        assert [text[:text.index(":") + 1].strip() for text in details][1:] == ["fix:", "see:"], err
        assert details[0].startswith("          rank ") and details[2].endswith("ddpcheck report " + line.trace), err
        assert err.count("see: ddpcheck report") == 1, err
        assert any("DC201 is withdrawn: " in text for text in lines[at[0] + 4:]), err
        assert "ending the job" not in err and "no finding" in lines[-1], err
    print(lines[at[0]])


if __name__ == "__main__":
    main()
