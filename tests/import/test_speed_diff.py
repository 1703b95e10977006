"""`ddpcheck diff` over timelines: where two runs' speed differs beyond their noise, and nothing of two runs that differ by noise alone."""

import json
import os
import random
import sqlite3

from importer import Importer, main
from timelines import Timeline


class SpeedDiff(Importer):
    def database(self, name, timeline):
        self.write(name + ".csv", timeline.csv())
        self.assertEqual(self.ddpcheck("import", "-o", name, name + ".csv").stderr, "")
        return name

    def diff(self, *arguments):
        """{(what, ranks): (milliseconds in A, in B)}, and the text."""
        done = self.ddpcheck("diff", "--json", *arguments)
        self.assertEqual((done.returncode, done.stderr), (0, ""))       # speed changes no exit status
        lines = [json.loads(line) for line in done.stdout.splitlines()]
        found = {(line["what"], line["ranks"]): tuple(round(line[side]["seconds"] * 1e3, 1) for side in "ab")
                 for line in lines if line["schema"] == "ddpcheck.speed_difference/1"}
        self.assertTrue(lines[-1]["equal"])
        return found, self.ddpcheck("diff", "--color", "never", *arguments).stdout

    def test_a_late_rank(self):
        fast, slow = self.database("fast", Timeline()), self.database("slow", Timeline(late=lambda rank, i: 0.004 if rank == 2 else 0))
        found, text = self.diff(fast, slow)
        self.assertEqual(found, {("iteration", "0-3"): (11.2, 15.2), ("lag", "2"): (0.0, 4.0)})
        self.assertRegex(text, r"(?m)^Speed differs: +A +B\n +time of an iteration, ranks 0-3 +11\.2 ms +15\.2 ms\n"
                               r" +lag behind peers, rank 2 +0\.0 ms 0% +4\.0 ms 26%$")
        found, text = self.diff(slow, "--rank", "1", "--with", "2")
        self.assertEqual(found, {("lag", "1"): (0.0, 4.0)})
        self.assertRegex(text, r"(?m)^ +lag behind peers +0\.0 ms 0% +4\.0 ms 26%$")

    def test_a_slow_link(self):
        """Of two communicators only the one that is slower now."""
        transfer = lambda group, i: 4 if group == 4 else 1
        found, text = self.diff(self.database("before", Timeline(ranks=8, width=4)),
                                self.database("after", Timeline(ranks=8, width=4, transfer=transfer)))
        self.assertEqual(found, {("iteration", "4-7"): (11.2, 14.2), ("transfer", "4-7"): (1.0, 4.0)})
        self.assertIn("1.0 ms 9%     4.0 ms 28%", text)

    def test_noise(self):
        def noisy(seed, slower=1.0):
            chance = random.Random(seed)
            return Timeline(slower=lambda rank, i: slower * chance.uniform(0.9, 1.4))

        one = self.database("one", noisy(1))
        found, text = self.diff(one, self.database("other", noisy(2)))
        self.assertEqual((found, "Speed" in text), ({}, False))
        found, _ = self.diff(one, self.database("slower", noisy(3, slower=1.5)))
        self.assertIn(("iteration", "0-3"), found)

    def test_standings_in_the_database(self):
        database = sqlite3.connect(os.path.join(self.folder, self.database("late", Timeline(late=lambda rank, i: 0.004 if rank == 2 else 0))))
        rows = database.execute("SELECT shown_rank, kind, code, round(lag_ns / 1e6, 1), 100 * lag_ns / length_ns, coarse FROM speed_state "
                                "ORDER BY lag_ns DESC, shown_rank").fetchall()
        database.close()
        self.assertEqual(rows[0], (2, "slow host", "DC601", 4.0, 26, 0))
        self.assertEqual([row[:3] for row in rows[1:]], [(rank, "", "") for rank in (0, 1, 3)])

    def test_too_few_iterations(self):
        found, _ = self.diff(self.database("short", Timeline(iterations=15)),
                             self.database("shorter", Timeline(iterations=15, slower=lambda rank, i: 2)))
        self.assertEqual(found, {})


if __name__ == "__main__":
    main()
