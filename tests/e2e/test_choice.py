"""What is suppressed is not told while the job runs and does not count for `ddpcheck run`, but is in the trace."""

import sys

from line import Line

JOB = ["--model", "gan", "--ranks", "2", "--iterations", "12", "--no-gang", "--fault", "init-gpu"]


def main(build):
    with Line(build, devices=2, name="choice") as line:
        program = [line.trainer, *JOB]
        status, _, err = line.run(program, ["--error-exitcode", "9"])
        assert status == 9 and "DC405" in err, (status, err)
        _, text, _ = line.call([line.tool, "report", "--gen-suppressions", line.trace])
        lines = [each for each in text.splitlines() if each.startswith("DC405:")]
        assert len(lines) == 1, text
        path = line.folder + "/quiet.supp"
        with open(path, "w") as file:
            file.write(lines[0] + "\n")
        for options, environment in ((["--suppressions", path], None), ([], {"DDPCHECK_SUPPRESSIONS": path}),
                                     (["--disable", "DC405"], None), (["--only", "hang"], None)):
            status, _, err = line.run(program, ["--error-exitcode", "9", *options], environment=environment)
            assert status != 9 and "DC405" not in err and "no finding" in err, (options, status, err)
            codes = [found["code"] for found in line.report()[1] if found["state"] == "open" and found["severity"] == "error"]
            assert codes == ["DC405"], (options, codes)
        status, _, err = line.run(program, ["--suppressions", "/no/such/file"])
        assert status == 2 and "can't read the suppressions in /no/such/file" in err, (status, err)


main(sys.argv[1])
