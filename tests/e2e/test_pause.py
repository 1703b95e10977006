"""Processes that come long after the last ones went, as after a restart by torchrun: `ddpcheck run` still watches them."""

import sys

from line import Line


def main():
    with Line(sys.argv[1], devices=1, name="pause") as line:
        job = line.trainer + " --ranks 1 --iterations 2 >/dev/null"
        status, _, err = line.run(["bash", "-c", "%s; sleep 4; %s" % (job, job)])
        assert status == 0, err
        processes = line.query("SELECT count(DISTINCT pid) FROM process")[0][0]
        assert processes == 2, "expected 2 processes in the trace, found %d: %s" % (processes, err)
    print("watched after a pause of 4 s")


if __name__ == "__main__":
    main()
