"""ddptrain from outside, with several ranks on the emulator: what it computes, and how its faults show.

run_trainer.py --list, or run_trainer.py --program DDPTRAIN CASE; exit status 77: the case can't run here.

Losses are compared without batch norm where the number of ranks differs: batch norm takes its statistics from a
rank's own batch, so that N ranks with batch B/N do not compute what one with batch B does. With the same number of
ranks everything is compared."""

import argparse
import os

import cases_faults
import cases_files
import cases_launching
import cases_learning
import running

CASES = {name[5:]: function for module in (cases_learning, cases_files, cases_launching, cases_faults)
         for name, function in vars(module).items() if name.startswith("case_")}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--program")
    parser.add_argument("case", nargs="?")
    options = parser.parse_args()
    if options.list:
        print("\n".join(CASES))
        return
    running.PROGRAM = os.path.abspath(options.program)
    CASES[options.case]()
    print(options.case + ": as expected")


if __name__ == "__main__":
    main()
