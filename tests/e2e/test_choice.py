"""What is suppressed is not told while the job runs and does not count for `ddpcheck run`, but is in the trace."""

import os
import sys

from line import Line

def check_counts(line):
    """The last line of `run` counts as the first of the report does; of notes alone it says that there is no error."""
    program = os.path.join(line.build, "tests", "interpose", "interpose_capture")
    if not os.path.exists(program):   # sanitizer builds have none
        return
    for options, counts, expected in (([], "1 error, 1 note", 0), (["--fail-on", "error"], "1 error, 1 note", 1),
                                      (["--disable", "DC301", "--fail-on", "warning"], "no error, 1 note", 0),
                                      (["--disable", "DC301", "--fail-on", "note"], "no error, 1 note", 1),
                                      (["--disable", "DC301", "--fail-on", "note", "--error-exitcode", "7"], "no error, 1 note", 7)):
        status, _, err = line.run([program, "queries"], options, environment={"DDPCHECK_EMU_STREAM_WRITES": "0"})
        assert status == expected and ", %s; report: " % counts in err.splitlines()[-1], (options, status, err)


def main(build):
    with Line(build, devices=4, name="choice") as line:
        program = [os.path.join(line.build, "tests", "suite", "hazard", "early_clear")]
        status, _, err = line.run(program, ["--error-exitcode", "9"])
        assert status == 9 and "DC301" in err, (status, err)
        _, text, _ = line.call([line.tool, "report", "--gen-suppressions", line.trace])
        lines = [each for each in text.splitlines() if each.startswith("DC301:")]
        assert len(lines) == 1, text
        path = line.folder + "/quiet.supp"
        with open(path, "w") as file:
            file.write(lines[0] + "\n")
        for options, environment in ((["--suppressions", path], None), ([], {"DDPCHECK_SUPPRESSIONS": path}),
                                     (["--disable", "DC301"], None), (["--only", "hang"], None)):
            status, _, err = line.run(program, ["--error-exitcode", "9", *options], environment=environment)
            assert status != 9 and "DC301" not in err and "no finding" in err, (options, status, err)
            codes = [found["code"] for found in line.report()[1] if found["state"] == "open" and found["severity"] == "error"]
            assert codes == ["DC301"], (options, codes)
        check_counts(line)
        status, _, err = line.run(program, ["--suppressions", "/no/such/file"])
        assert status == 2 and "can't read the suppressions in /no/such/file" in err, (status, err)


main(sys.argv[1])
