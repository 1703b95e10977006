"""Runs the tests of a program beside each other: they wait most of the time, each for a job of its own."""

import concurrent.futures
import sys
import time
import unittest

AT_ONCE = 4


def cases_of(suite):
    for each in suite:
        if isinstance(each, unittest.TestSuite):
            yield from cases_of(each)
        else:
            yield each


def run(case):
    result, began = unittest.TestResult(), time.monotonic()
    case.run(result)
    return case, result, time.monotonic() - began


def main():
    """Like unittest.main: runs the tests that are named, or all of the program. None may need setUpClass."""
    loader, program = unittest.defaultTestLoader, sys.modules["__main__"]
    suite = loader.loadTestsFromNames(sys.argv[1:], program) if sys.argv[1:] else loader.loadTestsFromModule(program)
    tests = failed = 0
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        for case, result, seconds in pool.map(run, cases_of(suite)):
            tests += 1
            failed += not result.wasSuccessful()
            print("%s %s, %.1f s" % ("ok" if result.wasSuccessful() else "FAILED", case.id(), seconds))
            for _, why in result.errors + result.failures + result.skipped:
                print(why)
    print("%d tests, %d failed" % (tests, failed))
    sys.exit(failed > 0 or tests == 0)
