"""A rank that is late for longer than --hang-after is reported as possible, which does not end a job under --on-finding
abort; when it comes, the finding is withdrawn on stderr."""

import os
import sys

from line import Line

PROGRAM = os.path.join("tests", "suite", "clean", "rank_is_very_late")


def main():
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
