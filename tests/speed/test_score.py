"""bench/speed/score.py: what counts as found, right and wrong, with findings written by hand and with a stand-in for ddpcheck."""

import json
import os
import subprocess
import sys
import tempfile
import unittest

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "bench", "speed")
sys.path.insert(0, FOLDER)

import score  # noqa: E402

# Answers as ddpcheck would: WHO "right" reports each cause, "nothing" none, "first" always blames rank 0.
STAND_IN = """#!%s
import json, os, sys
if sys.argv[1] == "import":
    open(sys.argv[sys.argv.index("-o") + 1], "w").write(os.path.dirname(sys.argv[-1]))
    sys.exit()
truth = json.load(open(os.path.join(open(sys.argv[-1]).read(), "truth.json")))
causes = {"right": truth["causes"], "nothing": [], "first": [{"code": "DC604", "ranks": [0], "share": 0.5}]}[os.environ["WHO"]]
print(json.dumps({"schema": "ddpcheck.report/1"}))
for cause in causes:
    print(json.dumps({"schema": "ddpcheck.finding/1", "code": cause["code"], "ranks": "", "what": "%%.1f %%%%" %% (100 * cause["share"]),
                      "sides": [{"ranks": ",".join(map(str, cause["ranks"]))}, {"ranks": "0-9"}]}))
sys.exit(1 if causes else 0)
""" % sys.executable


def cause(kind="slow-device", ranks=(3,), share=0.2, code="DC604", **more):
    return {"kind": kind, "code": code, "accepted": [code], "ranks": list(ranks), "visible": list(ranks), "since": 0, "period": 0,
            "mode": "", "share": share, "alone": share, "enough": [], **more}


def truth(*causes, **more):
    return {"seed": 1, "style": "ddp", "ranks": 8, "grid": {"tp": 1, "dp": 8, "pp": 1}, "noise": "quiet",
            "has": {"kernels": True, "issued": True}, "causes": list(causes), **more}


def report(code, ranks, what="it costs 20 % of an iteration", others="0-7", schema="ddpcheck.finding/1"):
    return json.dumps({"schema": schema, "code": code, "ranks": "0-7", "what": what, "sides": [{"ranks": ranks}, {"ranks": others}]})


def judged(job, *lines):
    return score.judge(job, score.findings_of(lines, job["ranks"]))


def found(outcome):
    """Of its first cause: rank, kind, share; and the number of wrong findings."""
    first = outcome["causes"][0]
    return first["found rank"], first["found kind"], first["found share"], outcome["wrong"]


class Judge(unittest.TestCase):
    def test_what_no_recording_shows_is_not_needed(self):
        """A slow stage looks like one with more layers; a slow rank of a stage does not."""
        pipeline = {"grid": {"tp": 1, "dp": 2, "pp": 4}, "has": {"kernels": False, "issued": False}}
        stage, rank = cause("slow-host", (2, 3)), cause("slow-host", (2,))
        self.assertFalse(score.observable(truth(stage, **pipeline), stage))
        self.assertTrue(score.observable(truth(rank, **pipeline), rank))
        self.assertTrue(score.observable(truth(stage, grid=pipeline["grid"]), stage))
        self.assertEqual(score.needed([judged(truth(stage, **pipeline))]), [])

    def test_only_findings_of_slow_jobs_count(self):
        self.assertEqual(score.findings_of([report("DC201", "1"), report("DC604", "1", schema="ddpcheck.member/1")], 8), [])
        finding, = score.findings_of([report("DC601", "1,4-6", "12.5 % of 3 s")], 8)
        self.assertEqual((finding["code"], finding["ranks"], finding["share"]), ("DC601", [1, 4, 5, 6], 0.125))
        self.assertIsNone(score.findings_of([report("DC601", "1", "no number")], 8)[0]["share"])

    def test_shares(self):
        self.assertEqual(score.share_of("5.1 ms of each iteration of 17.0 ms (30%): its kernels take 120 % of the others'"), 0.3)
        self.assertEqual(score.share_of("since iteration 34 iterations take 1.2 s instead of 900 ms; a later one is longer than an earlier one in 98% of cases"), 0.25)

    def test_share_beside_others_or_alone(self):
        for alone, near in ((0.4, True), (0.6, False)):
            job = truth(cause(share=0.2, alone=alone))
            self.assertEqual(found(judged(job, report("DC604", "3", "40 %"))), (True, True, near, 0))

    def test_one_rank(self):
        job = truth(cause())
        self.assertEqual(found(judged(job, report("DC604", "3"))), (True, True, True, 0))
        self.assertEqual(found(judged(job, report("DC601", "3"))), (True, False, True, 0))
        self.assertEqual(found(judged(job, report("DC604", "3", "60 % of an iteration"))), (True, True, False, 0))
        self.assertEqual(found(judged(job, report("DC604", "2"))), (False, False, False, 1))
        self.assertEqual(found(judged(job, report("DC604", "2-3"))), (False, False, False, 1))
        self.assertEqual(found(judged(job)), (False, False, False, 0))
        self.assertEqual(found(judged(job, report("DC604", "3"), report("DC606", "5-6"))), (True, True, True, 1))

    def test_kinds_that_can_not_be_distinguished(self):
        job = truth(cause(accepted=["DC604", "DC605"]))
        self.assertEqual(found(judged(job, report("DC605", "3"))), (True, True, True, 0))

    def test_several_ranks(self):
        job = truth(cause("more-work", (4, 5, 6, 7), code="DC605"))
        self.assertEqual(found(judged(job, report("DC605", "4-7"))), (True, True, True, 0))
        self.assertEqual(found(judged(job, report("DC605", "4"), report("DC605", "6"))), (True, True, True, 0))
        self.assertEqual(found(judged(job, report("DC605", "4"))), (False, False, True, 0))

    def test_ranks_that_are_enough(self):
        job = truth(cause("slow-host", range(8), code="DC601", enough=[[6, 7]]))
        self.assertEqual(found(judged(job, report("DC601", "6"))), (True, True, True, 0))
        self.assertEqual(found(judged(job, report("DC601", "0-2"))), (False, False, True, 0))

    def test_slow_link(self):
        job = truth(cause("slow-link", (2, 3), code="DC606", visible=[0, 1, 2, 3]))
        self.assertEqual(found(judged(job, report("DC606", "2-3"))), (True, True, True, 0))
        self.assertEqual(found(judged(job, report("DC606", "0-3"))), (True, True, True, 0))
        self.assertEqual(found(judged(job, report("DC606", "0-4"))), (False, False, False, 1))
        self.assertEqual(found(judged(job, report("DC606", "0-1"))), (False, False, False, 1))

    def test_all_ranks(self):
        job = truth(cause("pause", range(8), code="DC608", period=5))
        self.assertEqual(found(judged(job, report("DC608", "0-7"))), (True, True, True, 0))
        self.assertEqual(found(judged(job, report("DC608", ""))), (True, True, True, 0))
        self.assertEqual(found(judged(job, report("DC608", "1"))), (False, False, True, 0))
        self.assertEqual(found(judged(truth(cause()), report("DC608", ""))), (False, False, False, 1))

    def test_slower_since(self):
        """That a job became slower is right, whoever is the cause; without such a cause it is wrong."""
        self.assertEqual(found(judged(truth(cause("throttle-after", since=30)), report("DC607", "0-7"))), (False, False, False, 0))
        self.assertEqual(found(judged(truth(cause()), report("DC607", "0-7"))), (False, False, False, 1))

    def test_notes_are_never_wrong_about_ranks(self):
        self.assertEqual(judged(truth(), report("DC602", "0-7"), report("DC603", "0-7"))["wrong"], 0)
        self.assertEqual(judged(truth(), report("DC608", "0-7"))["wrong"], 1)

    def test_needed(self):
        """Small causes, and how the program is written, need not be found."""
        outcomes = [judged(truth(cause(share=0.09))), judged(truth(cause("unoverlapped", range(8), code="DC603"))), judged(truth(cause()))]
        self.assertEqual([one["kind"] for one in score.needed(outcomes)], ["slow-device"])


class Program(unittest.TestCase):
    """score.py as it is called, on three generated jobs."""

    @classmethod
    def setUpClass(cls):
        cls.place = tempfile.TemporaryDirectory(prefix="ddpcheck-speed-")
        cls.addClassCleanup(cls.place.cleanup)
        os.makedirs(os.path.join(cls.place.name, "bin"))
        tool = os.path.join(cls.place.name, "bin", "ddpcheck")
        with open(tool, "w", encoding="utf-8") as file:
            file.write(STAND_IN)
        os.chmod(tool, 0o755)
        cls.jobs = os.path.join(cls.place.name, "jobs")
        import plan     # small ones: clean, and with one cause of rank 1 and more that has to be found
        chosen = [plan.choose(seed) for seed in range(1, 400)]
        small = [job for job in chosen if job.world <= 8 and job.grid[2] == 1]
        clean = [job.seed for job in small if not job.causes]
        faulty = [job.seed for job in small if len(job.causes) == 1 and job.causes[0].kind in ("slow-host", "slow-device")
                  and 0 not in job.causes[0].ranks and job.causes[0].aim > 0.2]
        cls.seeds = [clean[0], faulty[0], faulty[1]]

    def score(self, who):
        """Returns {line's label: its figures} and the judged jobs."""
        results = os.path.join(self.place.name, who + ".jsonl")
        done = subprocess.run([sys.executable, os.path.join(FOLDER, "score.py"), self.place.name, ",".join(map(str, self.seeds)),
                               "--jobs", self.jobs, "--results", results, "--list"], capture_output=True, text=True,
                              stdin=subprocess.DEVNULL, env={**os.environ, "WHO": who})
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        with open(results, encoding="utf-8") as file:
            return done.stdout, [json.loads(line) for line in file]

    def test_all_found(self):
        out, jobs = self.score("right")
        self.assertEqual([job["truth"]["seed"] for job in jobs], sorted(self.seeds))
        self.assertRegex(out, r"(?m)^all +100\.0 % of +2 +100\.0 % of +2 +100\.0 % of +2 +100\.0 % of +2$")
        self.assertRegex(out, r"clean jobs without a wrong one +100\.0 % of +1 ")
        self.assertNotIn("MISSED", out)

    def test_nothing_found(self):
        out, _ = self.score("nothing")
        self.assertRegex(out, r"(?m)^all +0\.0 % of +2 +0\.0 % of +2 +0\.0 % of +2 +- +$")
        self.assertEqual(out.count("MISSED"), 2)

    def test_wrong_rank(self):
        out, jobs = self.score("first")
        self.assertRegex(out, r"(?m)^all +0\.0 % of +2 +0\.0 % of +2 +0\.0 % of +2 +0\.0 % of +3$")
        self.assertRegex(out, r"clean jobs without a wrong one +0\.0 % of +1 ")
        self.assertEqual(out.count("WRONG"), 3)
        self.assertEqual([job["wrong"] for job in jobs], [1, 1, 1])

    def test_soon_after_the_cause(self):
        done = subprocess.run([sys.executable, os.path.join(FOLDER, "score.py"), self.place.name, "%d" % self.seeds[1], "--after", "12",
                               "--results", os.path.join(self.place.name, "short.jsonl")], capture_output=True, text=True,
                              stdin=subprocess.DEVNULL, env={**os.environ, "WHO": "right"})
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        with open(os.path.join(self.place.name, "short.jsonl"), encoding="utf-8") as file:
            self.assertEqual(json.load(file)["truth"]["iterations"], 12)

    def test_a_tool_that_fails(self):
        done = subprocess.run([sys.executable, os.path.join(FOLDER, "score.py"), os.path.join(self.place.name, "none"), "%d" % self.seeds[0]],
                              capture_output=True, text=True, stdin=subprocess.DEVNULL)
        self.assertNotEqual(done.returncode, 0)


if __name__ == "__main__":
    unittest.main()
