"""ddptrain's faults of GPUs and links, and its tiny buckets: each gives its finding and no other one about ranks and links; the
same job without a fault gives none of these. What begins later does so at an operation here, not at a time: a busy machine
would have done little by then. Mostly the jobs sleep, so they run beside each other."""

import concurrent.futures
import sys

from line import Line
from slow import DEVICES, RIGHT, check_found, findings_of

# fault: iterations (0: the usual ones), environment
FAULTS = {
    "slow-device": (0, {}),
    "throttle-after": (85, {"DDPCHECK_EMU_DEVICE_SPEED": "1=0.4@90th"}),        # from about the 38th iteration on
    "slow-link": (85, {"DDPCHECK_EMU_LINK_RATE": "0-1=150K@90th"}),
    "tiny-buckets": (0, {}),
}


def check_fault(build, fault, is_exact=True):
    iterations, environment = FAULTS[fault]
    with Line(build, devices=DEVICES, name=fault) as line:
        findings = findings_of(line, fault, ["--timing"] if is_exact else [], iterations, **environment)
        check_found(fault, findings, is_exact)
        print("%s: %s" % (fault, findings[0]["what"]))


def check_right(build):
    for options in ["--timing"], []:
        with Line(build, devices=DEVICES, name="right") as line:
            findings = findings_of(line, RIGHT, options)
            assert findings == [], [each["what"] for each in findings]


def run_checks(checks):
    """Each a function and its arguments, beside each other."""
    with concurrent.futures.ThreadPoolExecutor(len(checks)) as pool:
        started = [pool.submit(*check) for check in checks]
    for check in started:
        check.result()


if __name__ == "__main__":
    run_checks([(check_fault, sys.argv[1], fault) for fault in FAULTS] + [(check_right, sys.argv[1])])
