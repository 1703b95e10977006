"""ddptrain's slow GPUs and links without exact times: the progress words alone give the finding, as a note. They are read by a
thread of the host, so these jobs run while no other test does; where the machine is busy nothing is reported."""

import sys

from test_slow_hardware import check_fault, run_checks

if __name__ == "__main__":
    run_checks([(check_fault, sys.argv[1], fault, False) for fault in ("slow-device", "throttle-after", "slow-link")])
