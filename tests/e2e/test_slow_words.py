"""ddptrain's slow GPUs and links without exact times: the progress words alone give the finding, as a note. They are read by a
thread of the host, so these jobs run while no other test does; where the machine is busy nothing is reported."""

import concurrent.futures
import sys

from test_slow_hardware import FAULTS, LATER, train

BY_WORDS = ("slow-device", "throttle-after", "slow-link")


def check_coarse(build, fault):
    iterations, code, _, ranks, _ = FAULTS[fault]
    findings = train(build, fault, iterations, "--fault", fault, options=(), **LATER.get(fault, {}))
    found = [(each["code"], each["severity"], each["sides"][0]["ranks"]) for each in findings]
    assert found == [(code, "note", ranks)], (fault, found, [each["what"] for each in findings])
    print("%s: %s" % (fault, findings[0]["what"]))


def main():
    with concurrent.futures.ThreadPoolExecutor(len(BY_WORDS)) as pool:
        checks = [pool.submit(check_coarse, sys.argv[1], fault) for fault in BY_WORDS]
    for check in checks:
        check.result()


if __name__ == "__main__":
    main()
