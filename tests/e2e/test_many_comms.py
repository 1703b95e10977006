"""A job that makes and ends communicators all the time: nothing is found in it, those that all ranks ended leave the
collector, and the use of one that was destroyed is found at the end.

test_many_comms.py BUILD"""

import os
import sys

from line import Line

ROUNDS = 400
DESTROYED_LAST = 403        # its last round is by a unique id, and not aborted


def run(build, program, rounds, keeps=0):
    with Line(build, devices=3, name="many_comms") as line:
        status, out, err = line.run([os.path.join(line.build, "tests", program)], timeout=500,
                                    environment={"COMMS_ROUNDS": str(rounds), "COMMS_KEEPS": str(keeps)})
        _, findings, _ = line.report()
        print(program, rounds, keeps, status, [(each["code"], each["severity"]) for each in findings[:5]])
        return status, [each["code"] for each in findings if each["code"] != "DC804"]    # the notes of those that it keeps


def main():
    build = sys.argv[1]
    for keeps in (0, 7):
        assert run(build, "many_comms.twin", ROUNDS, keeps) == (0, [])
    assert run(build, "many_comms", DESTROYED_LAST)[1] == ["DC111"]


main()
