"""Timelines of the second generator (bench/speed/strangers.py): each cause is named, of clean ones nothing is said, also where only some
iterations are recorded; and what a cause costs is what the job is shorter by without it."""

import os
import sys
import tempfile
import unittest

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "bench", "speed")
sys.path.insert(0, FOLDER)

import score  # noqa: E402
import strangers  # noqa: E402

SEEDS = range(100, 124)         # three of each cause: with all iterations, each n-th, and a few of every twenty


class Strangers(unittest.TestCase):
    def test_each(self):
        with tempfile.TemporaryDirectory() as folder:
            for seed in SEEDS:
                strangers.write(folder, seed)
                outcome = score.score((tool, seed, folder, None))
                told = [finding["what"] for finding in outcome["findings"]]
                with self.subTest(seed=seed, kind=strangers.CAUSES[seed % len(strangers.CAUSES)]):
                    self.assertEqual(outcome["wrong"], 0, told)
                    for cause in outcome["causes"]:
                        if cause["share"] >= score.NEEDED:
                            self.assertTrue(cause["found rank"] and cause["found kind"], (cause, told))

    def test_gaps_are_no_iterations(self):
        """What a profiler left out is not the time of those that it recorded; their numbers are the program's."""
        with tempfile.TemporaryDirectory() as folder:
            seed = next(seed for seed in SEEDS if seed % 8 == 7 and seed // 8 % 3 == 1)
            strangers.write(folder, seed)
            outcome = score.score((tool, seed, folder, None))
        job = strangers.Job(seed)
        finding, = outcome["findings"]
        self.assertIn("since iteration %d " % job.numbers[job.since], finding["what"])


if __name__ == "__main__":
    tool = os.path.join(os.path.abspath(sys.argv[1]), "bin", "ddpcheck")
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]])
