"""ddptrain's faults of GPUs and links, and its tiny buckets: each gives its finding and no other one about ranks and links; the
same job without a fault gives none of these. Kernels and links take modelled times, so that other programs on the machine can
only add to them, and what begins later does so at an operation, not at a time: a busy machine would have done little by then.
Mostly the jobs sleep, so they run beside each other."""

import concurrent.futures
import sys

from line import Line

KERNEL_TIME = {"DDPCHECK_EMU_KERNEL_TIME": "all=0.002"}
LATER = {
    "throttle-after": {"DDPCHECK_EMU_DEVICE_SPEED": "1=0.4@90th"},
    "slow-link": {"DDPCHECK_EMU_LINK_RATE": "0-1=100K@90th"},
}
# fault: (iterations, finding, severity, its ranks, words)
FAULTS = {
    "slow-device": (50, "DC604", "warning", "1", ("the same work takes the GPU longer", "ddpcheck_")),
    "throttle-after": (90, "DC604", "warning", "1", ("since iteration ", "the same work takes the GPU longer")),
    "slow-link": (90, "DC606", "note", "0-1", ("transfers of comm classifier", "times as long as before", "since iteration ")),
    "tiny-buckets": (30, "DC602", "note", "0-1", ("ncclAllReduce is called 16 times or more in a row",)),
}
HARDWARE = ("DC602", "DC604", "DC605", "DC606", "DC608")


def train(build, name, iterations, *more, options=("--timing",), **environment):
    """The findings that no busy host causes."""
    with Line(build, devices=2, name=name) as line:
        program = [line.trainer, "--ranks", "2", "--model", "cnn", "--iterations", str(iterations), *more]
        status, out, err = line.run(program, options, timeout=500, environment=environment)
        assert status == 0, out + err
        _, findings, _ = line.report()
        return [each for each in findings if each["code"] in HARDWARE and each.get("state") != "resolved"]


def check_fault(build, fault):
    iterations, code, severity, ranks, words = FAULTS[fault]
    findings = train(build, fault, iterations, "--fault", fault, **LATER.get(fault, {}))
    found = [(each["code"], each["severity"], each["sides"][0]["ranks"]) for each in findings]
    assert found == [(code, severity, ranks)], (fault, found, [each["what"] for each in findings])
    for word in words:
        assert word in findings[0]["what"], (fault, findings[0]["what"])
    print("%s: %s" % (fault, findings[0]["what"]))


def check_right(build):
    for options in ("--timing",), ():
        findings = train(build, "right", 40, options=options, **KERNEL_TIME)
        assert findings == [], [each["what"] for each in findings]


def main():
    build = sys.argv[1]
    with concurrent.futures.ThreadPoolExecutor(len(FAULTS) + 1) as pool:
        checks = [pool.submit(check_fault, build, fault) for fault in FAULTS]
        checks.append(pool.submit(check_right, build))
    for check in checks:
        check.result()


if __name__ == "__main__":
    main()
