"""Timelines of others: what slows a job is named, of its correct twin nothing is said; columns may lack, stand in any order, or
have other names."""

import json
import random
import re
import unittest

from importer import Importer, main
from timelines import Buckets, Grid, Pipeline, Replicas, Ring, Timeline

SPEED = ("DC601", "DC604", "DC605", "DC606", "DC607", "DC608", "DC609", "DC610")


class SlowTimelines(Importer):
    def slow(self, timeline, name="job.csv", text=None):
        result = self.importing(self.write(name, text or timeline.csv()))
        self.assertEqual((result.status, result.err), (0, ""))
        return result, {code: ranks for code, ranks in result.codes().items() if code in SPEED}

    def expect(self, timeline, codes, words=(), **how):
        result, found = self.slow(timeline, **how)
        self.assertEqual(found, codes)
        for word in words:
            self.assertIn(word, result.what(next(iter(codes))))

    def test_nothing(self):
        self.expect(Timeline(), {})
        self.expect(Timeline().without("issued", "host", "bytes", "iteration", "number"), {})
        self.expect(Timeline().without_kernels(), {})

    def test_late_host(self):
        late = lambda rank, i: 0.004 if rank == 2 else 0
        self.expect(Timeline(late=late), {"DC601": ["2"]}, ("rank 2 (host n1)", "4 ms of each iteration of 15.2 ms (26%)"))
        chance = random.Random(1)
        turns = [chance.randrange(4) for _ in range(60)]
        self.expect(Timeline(late=lambda rank, i: 0.004 if rank == turns[i] else 0), {})
        self.expect(Timeline(late=lambda rank, i: 0.004), {})

    def test_host_whose_ranks_are_late_in_turn(self):
        chance = random.Random(2)
        turns = [chance.randrange(8) for _ in range(60)]
        self.expect(Timeline(ranks=8, late=lambda rank, i: 0.006 if rank == 2 + turns[i] % 2 else 0), {"DC601": ["2-3"]},
                    ("ranks 2-3 (host n1)",))
        self.expect(Timeline(ranks=8, late=lambda rank, i: 0.006 if rank == turns[i] else 0), {})

    def test_the_later_of_two_hosts(self):
        """Each of its ranks is late now and then; so often more than the other host's that it is no chance."""
        chance = random.Random(3)
        turns = [chance.randrange(8) for _ in range(60)]
        self.expect(Timeline(ranks=4, late=lambda rank, i: 0.006 if turns[i] < 4 and rank == 2 + turns[i] % 2 else 0), {"DC601": ["2-3"]},
                    ("ranks 2-3 (host n1)",))
        self.expect(Timeline(ranks=4, late=lambda rank, i: 0.006 if rank == turns[i] else 0), {})

    def test_transfers_that_a_late_host_exposes(self):
        """Beside the late rank's work the first bucket is moved, while the others have nothing left to do but wait for its end."""
        late = lambda rank, i: 0.004 if rank == 2 else 0
        self.expect(Buckets(late=late), {"DC601": ["2"]}, ("ms of each iteration of 36 ms (11%)",))
        self.expect(Buckets(late=lambda rank, i: 0.004), {})
        self.expect(Buckets(), {})

    def test_transfers_of_ranks_with_a_group_of_their_own(self):
        """They are compared with peers that have none, and all wait equally long for the same transfers."""
        timeline = Timeline(transfer=lambda group, i: 4).without_kernels()
        own = [Timeline.row(rank, "0-1", "AllReduce", 0, 0, 0.0001, 0.00005, 0.0001) for rank in (0, 1)]
        timeline.rows[:0] = own
        self.expect(timeline, {})
        timeline = Timeline(transfer=lambda group, i: 4)        # kernels of one rank are not recorded
        timeline.rows[:] = own + [row for row in timeline.rows if row["group"] or row["rank"] != 3]
        self.expect(timeline, {})
        timeline.rows = [row for row in timeline.rows if row["group"] or row["rank"] == 3]
        self.expect(timeline, {})

    def test_pauses_hide_no_late_host(self):
        """Rank 1 is late in each iteration, and waits for rank 3 in each tenth."""
        late = lambda rank, i: 0.2 if rank == 3 and i % 10 == 9 else 0.004 if rank == 1 else 0
        result, found = self.slow(Timeline(iterations=80, late=late))
        self.assertEqual(found, {"DC601": ["1"], "DC608": ["3"]})

    def test_slow_device(self):
        slower = lambda rank, i: 1.5 if rank == 1 else 1
        self.expect(Timeline(slower=slower), {"DC604": ["1"]}, ("1.50 times as long", "attention"))
        self.expect(Timeline(slower=lambda rank, i: 1.5), {})
        self.expect(Timeline(slower=slower).without_kernels(), {"DC604": ["1"]})

    def test_which_it_is_is_not_known(self):
        timeline = Timeline(slower=lambda rank, i: 1.5 if rank == 1 else 1).without_kernels().without("issued")
        result, found = self.slow(timeline)
        self.assertEqual(found, {"DC601": ["1"]})
        self.assertIn("does not say whether the host or the GPU", result.what("DC601"))

    def test_a_whole_host(self):
        self.expect(Timeline(ranks=8, slower=lambda rank, i: 1.5 if rank in (4, 5) else 1), {"DC604": ["4-5"]},
                    ("ranks 4-5 (host n2)",))

    def test_a_host_that_is_late_now_here_now_there(self):
        late = lambda rank, i: {4: 0.004, 5: 0.0018}.get(rank, 0)
        self.expect(Timeline(ranks=8, late=late), {"DC601": ["4-5"]}, ("ranks 4-5 (host n2)",))
        late = lambda rank, i: {4: 0.004, 6: 0.0018}.get(rank, 0)
        self.expect(Timeline(ranks=8, late=late), {"DC601": ["4"]}, ("rank 4 (host n2)",))

    def test_more_work(self):
        kernel = lambda rank, i, name: 2 if rank == 3 and name == "attention" else 1
        self.expect(Timeline(kernel=kernel), {"DC605": ["3"]}, ("attention",))
        self.expect(Timeline(kernel=lambda rank, i, name: 2 if name == "attention" else 1), {})

    def test_more_kernels(self):
        timeline = Timeline(late=lambda rank, i: 0.004 if rank == 3 else 0)
        timeline.rows += [{**row, "operation": "dropout", "start": row["start"] - 0.0041, "duration": 0.004, "issued": row["issued"] - 0.004}
                          for row in timeline.rows if row["rank"] == 3 and row["operation"] == "attention"]
        self.expect(timeline, {"DC605": ["3"]}, ("1.33 times as many kernels and copies",))

    def test_slow_link(self):
        slow = Timeline(ranks=8, width=2, transfer=lambda group, i: 4 if group == 4 else 1)
        self.expect(slow, {"DC606": ["4-5"]}, ("4.0 times as long",))
        self.expect(Timeline(ranks=8, width=2, transfer=lambda group, i: 4), {})

    def test_a_link_that_is_a_little_slower(self):
        """Its transfers differ so little that it is no chance."""
        slow = lambda group, i: 5.4 if group == 4 else 4
        self.expect(Timeline(ranks=8, width=2, transfer=slow), {"DC606": ["4-5"]}, ("as those of communicators like it",))
        chance = random.Random(4)
        self.expect(Timeline(ranks=8, width=2, transfer=lambda group, i: 4 * chance.lognormvariate(0, 0.6)), {})

    def test_host_whose_links_are_slow(self):
        """Most of all links between hosts are this one's."""
        slow = Timeline(ranks=16, width=2, transfer=lambda group, i: 4 if group < 10 else 1)
        for row in slow.rows:
            row["host"] = "n1" if row["rank"] < 10 and row["rank"] % 2 else "m%d" % row["rank"]
        self.expect(slow, {"DC606": ["1,3,5,7,9"]}, ("4.0 times as long", "host n1"))
        for row in slow.rows:       # no host has all of the slow ones
            row["host"] = "m%d" % row["rank"]
        self.expect(slow, {})

    def test_slow_link_since(self):
        since = Timeline(iterations=80, transfer=lambda group, i: 4 if i >= 40 else 1)
        self.expect(since, {"DC606": ["0-3"]}, ("since iteration 40", "take 4.0 times as long"))
        broken = Timeline(iterations=80, transfer=lambda group, i: 1523 if i >= 40 else 1)
        self.expect(broken, {"DC606": ["0-3"]}, ("take 1500 times as long as before: 1.5", " s of each iteration of 1.5"))
        for row in since.rows:
            row["iteration"] += 5000        # of a job that was resumed
        self.expect(since, {"DC606": ["0-3"]}, ("since iteration 5040", "take 4.0 times as long"))

    def test_slow_link_beside_a_job_that_becomes_slower(self):
        slower = lambda rank, i: 2 if i >= 40 else 1
        slow = Timeline(iterations=80, slower=slower, transfer=lambda group, i: 4 if i >= 40 else 1)
        self.expect(slow, {"DC606": ["0-3"], "DC607": ["0-3"]}, ("since iteration 40", "take 4.0 times as long as before"))
        self.expect(Timeline(iterations=80, slower=slower), {"DC607": ["0-3"]})

    def test_a_link_that_is_slower_than_any_should_be(self):
        """Of a single communicator from the start on."""
        self.expect(Timeline(transfer=lambda group, i: 20), {"DC606": ["0-3"]}, ("MB/s (bus bandwidth)", "less than gigabit Ethernet"))
        self.expect(Timeline(transfer=lambda group, i: 8), {})

    def test_slower_since(self):
        self.expect(Timeline(iterations=80, slower=lambda rank, i: 1.3 if i >= 40 else 1), {"DC607": ["0-3"]},
                    ("since iteration 40 iterations take 14.2 ms instead of 11.2 ms",))
        self.expect(Timeline(iterations=80, slower=lambda rank, i: 1.3 if i == 40 else 1), {})

    def test_work_that_takes_longer_in_spite_of_noise(self):
        """Transfers hide that iterations are longer; kernels show it."""
        chance = random.Random(5)
        noise = [20 * chance.random() for _ in range(80)]
        slow = Timeline(iterations=80, slower=lambda rank, i: 1.4 if i >= 40 else 1, transfer=lambda group, i: noise[i])
        self.expect(slow, {"DC607": ["0-3"]}, ("the work of all ranks takes longer: 4 ms of each iteration",))
        self.expect(Timeline(iterations=80, transfer=lambda group, i: noise[i]), {})

    def test_throttled_since(self):
        slower = lambda rank, i: 1.5 if rank == 3 and i >= 40 else 1
        self.expect(Timeline(iterations=80, slower=slower), {"DC604": ["3"]}, ("since iteration 40",))

    def test_pauses(self):
        late = lambda rank, i: 0.050 if rank == 2 and i % 10 == 9 else 0
        self.expect(Timeline(late=late), {"DC608": ["2"]}, ("every 10 iterations rank 2",))
        self.expect(Timeline(late=lambda rank, i: 0.050 if i % 10 == 9 else 0), {"DC608": ["0-3"]}, ("all ranks",))
        self.expect(Timeline(late=lambda rank, i: 0.050 if rank == 2 and i in (7, 12, 33, 35, 50) else 0), {})

    def test_pauses_of_a_job_that_warms_up(self):
        """Its first iterations take seconds: they count for nothing, or more would be lost there than in the pauses."""
        warm = lambda rank, i: (3 if i < 4 and rank != 1 else 0)
        late = lambda rank, i: warm(rank, i) or (0.050 if rank == 2 and i % 10 == 9 else 0)
        self.expect(Timeline(late=late), {"DC608": ["2"]}, ("every 10 iterations rank 2 (host n1) pauses for 50 ms",))
        self.expect(Timeline(late=warm), {})
        late = lambda rank, i: (0.060 if i % 5 == 4 else 0) + (0.006 if rank == 1 and i >= 26 else 0)
        result, found = self.slow(Timeline(late=late))      # what comes again is no warming up
        self.assertIn("since iteration 2", result.what("DC601"))

    def test_pauses_among_many_short_ones(self):
        """A third of the rank's iterations are a little longer: the long ones alone are what comes regularly."""
        chance = random.Random(1)
        short = [0.004 * (chance.random() < 0.35) for _ in range(100)]
        late = lambda rank, i: (0.060 if i % 20 == 19 else short[i]) if rank == 2 else 0
        self.expect(Timeline(iterations=100, late=late), {"DC608": ["2"]}, ("every 20 iterations rank 2",))

    def test_pauses_at_varying_distances(self):
        """As of a garbage collector. Stalls at any time are chance."""
        stalls = (8, 17, 29, 38, 49, 57, 68, 80, 91)
        late = lambda rank, i: 0.050 if rank == 2 and i in stalls else 0
        self.expect(Timeline(iterations=100, late=late), {"DC608": ["2"]}, ("about every 10 iterations rank 2", "pauses for 50 ms"))
        chance = (8, 10, 11, 38, 39, 41, 80, 91)
        late = lambda rank, i: 0.050 if i in chance and rank == i % 4 else 0
        self.expect(Timeline(iterations=100, late=late), {})

    def test_pauses_beside_other_long_iterations(self):
        """Of a host; what else makes iterations long takes half as long."""
        stalls = (8, 17, 29, 38, 49, 57, 68, 80, 91)
        others = (3, 12, 22, 24, 33, 43, 51, 62, 64, 75, 86)
        late = lambda rank, i: 0.050 if rank in (2, 3) and i in stalls else 0.022 if rank == 2 and i in others else 0
        self.expect(Timeline(ranks=8, iterations=100, late=late), {"DC608": ["2-3"]}, ("about every 10 iterations ranks 2-3 (host n1)",))
        late = lambda rank, i: 0.050 if i in stalls else 0.022 if rank == 2 and i in others else 0
        self.expect(Timeline(ranks=8, iterations=100, late=late), {"DC608": ["0-7"]}, ("about every 10 iterations all ranks pause",))

    def test_of_many_ranks_one_looks_regular_by_chance(self):
        for seed in (1, 2, 3, 4):
            chance = random.Random(seed)
            stalls = {(rank, i) for rank in range(8) for i in range(60) if chance.random() < 0.1}
            self.expect(Timeline(ranks=8, late=lambda rank, i: 0.012 if (rank, i) in stalls else 0), {})

    def test_pauses_of_a_job_that_becomes_slower(self):
        late = lambda rank, i: 0.050 if rank == 2 and i % 10 == 9 else 0
        slower = lambda rank, i: 2 if i >= 40 else 1
        self.expect(Timeline(iterations=80, late=late, slower=slower), {"DC607": ["0-3"], "DC608": ["2"]})

    def test_pauses_of_a_job_in_which_a_rank_becomes_late(self):
        """What is usual differs before and since: rank 1 does not pause."""
        late = lambda rank, i: 0.050 if rank == 3 and i % 10 == 9 else 0.060 if rank == 1 and i >= 52 else 0
        result, found = self.slow(Timeline(ranks=8, iterations=100, late=late))
        self.assertEqual(found, {"DC601": ["1"], "DC608": ["3"]})

    def test_a_stage_without_peers_becomes_slower(self):
        """It is compared with its own past, and the others are not slower."""
        slower = lambda rank, i: 1.5 if rank == 2 and i >= 40 else 1
        self.expect(Pipeline(slower=slower), {"DC604": ["2"]}, ("rank 2 (host n1)", "since iteration 40"))
        late = lambda rank, i: 0.005 if rank == 1 and i >= 40 else 0
        self.expect(Pipeline(late=late).without_kernels(), {"DC601": ["1"]}, ("rank 1 (host n0)", "since iteration 40"))
        self.expect(Pipeline(slower=lambda rank, i: 1.5 if i >= 40 else 1), {"DC607": ["0-3"]})
        self.expect(Pipeline(), {})

    def test_how_much_longer_since_a_change(self):
        """Kernels are compared since then, not over the whole run."""
        slower = lambda rank, i: 1.5 if rank == 3 and i >= 40 else 1
        self.expect(Timeline(iterations=80, slower=slower), {"DC604": ["3"]}, ("1.50 times as long", "since iteration 40"))

    def test_two_ranks_that_are_not_equally_slow(self):
        """The faster of them waits for the slower one, but its kernels show that it is slow as well."""
        slower = lambda rank, i: {2: 1.5, 5: 1.25}.get(rank, 1)
        result, found = self.slow(Timeline(ranks=8, slower=slower))
        self.assertEqual([each["sides"][0]["ranks"] for each in result.findings if each["code"] == "DC604"], ["2", "5"])

    def test_neighbours_that_exchange_messages(self):
        """They are peers, whether or not each pair has a communicator of its own."""
        for named in (True, False):
            self.expect(Ring(slower=lambda rank, i: 1.5 if rank == 2 else 1, named=named).without("issued"), {"DC601": ["2"]})
            self.expect(Ring(named=named).without("issued"), {})

    def test_buckets_beside_the_backward_pass_of_a_grid(self):
        """Kernels are not recorded: who computes meanwhile does not wait."""
        slower = lambda rank, i: 1.3 if rank == 3 else 1
        self.expect(Grid(slower=slower).without_kernels().without("iteration"), {"DC604": ["3"]}, ("15 ms of each iteration",))
        self.expect(Grid().without_kernels().without("iteration"), {})
        slower = lambda rank, i: 1.3 if rank == 3 and i >= 40 else 1
        self.expect(Grid(iterations=80, slower=slower).without_kernels(), {"DC604": ["3"]}, ("since iteration 40",))

    def test_members_of_a_slow_link_are_not_slow_themselves(self):
        transfer = lambda ranks, i: 8 if len(ranks) > 2 else 4 if ranks == (2, 3) and i >= 40 else 1
        slow = Grid(iterations=80, transfer=transfer)
        self.expect(slow.without_kernels().without("issued"), {"DC606": ["2-3"]}, ("since iteration 40",))

    def test_stages_that_lose_little_each(self):
        """A batch passes all of them, so it adds up."""
        self.expect(Replicas(slower=lambda rank, i: 1.15 if rank >= 8 else 1), {"DC604": ["8-15"]}, ("24 ms of each iteration of 202 ms",))
        self.expect(Replicas(slower=lambda rank, i: 1.15 if rank == 8 else 1), {})
        self.expect(Replicas(), {})

    def test_a_late_host_drives_half_of_a_pipeline(self):
        self.expect(Pipeline(late=lambda rank, i: 0.01 if rank >= 2 else 0), {"DC601": ["2-3"]})
        self.expect(Pipeline(), {})

    def test_a_first_stage_that_computes_with_what_it_received_last(self):
        """Without kernels that looks idle: the host reads the loss then, and launches the next iteration."""
        uneven = Pipeline(slower=lambda rank, i: 0.7 if rank in (1, 2) else 1)
        self.expect(uneven.launched_at_once().without_kernels(), {})

    def test_what_a_replica_costs(self):
        """Each stage loses 4 ms, one after the other; the other replica waits for all that, and each host is told its part."""
        result, _ = self.slow(Replicas(stages=4, slower=lambda rank, i: 1.2 if rank >= 4 else 1))
        told = [each["what"] for each in result.findings if each["code"] == "DC604"]
        self.assertEqual(["make the others wait 8 ms of each iteration of 105 ms (8%)" in each for each in told], [True, True], told)

    def test_replicas_that_lose_alike(self):
        """None waits for the other, and the job is as slow without one of them: they are one finding."""
        result, _ = self.slow(Replicas(stages=4, slower=lambda rank, i: 1.5 if rank in (1, 6) else 1))
        told = [each["what"] for each in result.findings if each["code"] == "DC604"]
        self.assertEqual(["10 ms of each iteration of 98.6 ms (10%)" in each for each in told], [True], told)

    def test_a_slow_stage_that_costs_little(self):
        """The other stages of its replica make up for most of the 6 ms that it loses: the job would gain 1 ms."""
        self.expect(Replicas(stages=4, slower=lambda rank, i: {0: 0.9, 1: 1.3, 2: 0.9, 3: 0.9}.get(rank, 1)), {})
        self.expect(Replicas(stages=4, slower=lambda rank, i: {0: 0.9, 1: 1.6, 2: 0.9, 3: 0.9}.get(rank, 1)), {"DC604": ["1"]},
                    ("makes the others wait 6 ms of each iteration",))

    def test_a_slow_stage_that_costs_nothing_explains_no_longer_iterations(self):
        """Its replica is faster than the other; what all stages lose since then shows."""
        uneven = {0: 0.88, 1: 1.3, 2: 0.88, 3: 0.88}        # in all less than the other replica's 4
        slower = lambda whole: lambda rank, i: whole * uneven.get(rank, 1) if i >= 40 else 1
        self.expect(Replicas(stages=4, iterations=80, slower=slower(1.12)), {"DC604": ["1"]}, ("since iteration 40",))
        self.expect(Replicas(stages=4, iterations=80, slower=slower(1)), {})

    def test_longer_sequences(self):
        """The optimizer takes as long as on the peers: it is not the device."""
        for attention in (1.3, 1.7):
            kernel = lambda rank, i, name: {"attention": attention, "gemm": 1.3}.get(name, 1) if rank == 3 else 1
            self.expect(Timeline(kernel=kernel), {"DC605": ["3"]})

    def test_late_in_some_iterations(self):
        """One rank again and again is a cause; now this one, now that one is chance."""
        chance = random.Random(2)
        stalls = {i for i in range(120) if chance.random() < 0.3}
        late = lambda rank, i: 0.012 if rank == 2 and i in stalls else 0
        self.expect(Timeline(iterations=120, late=late), {"DC601": ["2"]}, ("of the iterations: the GPU has nothing to do",))
        turns = [chance.randrange(4) for _ in range(120)]
        self.expect(Timeline(iterations=120, late=lambda rank, i: 0.012 if i in stalls and rank == turns[i] else 0), {})

    def test_slow_for_a_while(self):
        slower = lambda rank, i: 1.5 if rank == 2 and i < 50 else 1
        self.expect(Timeline(iterations=100, slower=slower), {"DC604": ["2"]}, ("until iteration 50", "1.50 times as long"))
        slow = Timeline(iterations=110, transfer=lambda group, i: 6 if 40 <= i < 80 else 1)
        self.expect(slow, {"DC606": ["0-3"]}, ("since iteration 40 until iteration 80", "6.0 times as long"))
        self.expect(Timeline(iterations=110, slower=lambda rank, i: 1.4 if 40 <= i < 80 else 1), {"DC607": ["0-3"]},
                    ("since iteration 40 iterations take", ", until iteration 80;"))
        self.expect(Timeline(iterations=110, slower=lambda rank, i: 1.4 if i < 40 else 1), {})

    def test_little_evidence(self):
        self.expect(Timeline(iterations=15, late=lambda rank, i: 0.004 if rank == 2 else 0), {})
        self.expect(Timeline(late=lambda rank, i: 0.0003 if rank == 2 else 0), {})

    def test_iterations_without_names(self):
        """The period of the gaps between operations is an iteration."""
        late = lambda rank, i: 0.050 if rank == 2 and i % 10 == 9 else 0
        self.expect(Timeline(iterations=80, late=late).without("iteration"), {"DC608": ["2"]}, ("every 10 iterations rank 2",))
        slower = lambda rank, i: 1.3 if i >= 40 else 1
        self.expect(Timeline(iterations=80, slower=slower).without("iteration"), {"DC607": ["0-3"]}, ("since iteration 40 ",))

    def test_slower_since_beside_a_slow_rank(self):
        slower = lambda rank, i: (1.5 if rank == 1 else 1) * (1.3 if i >= 40 else 1)
        result, found = self.slow(Timeline(iterations=80, slower=slower))
        self.assertEqual(found, {"DC604": ["1"], "DC607": ["0-3"]})

    def test_the_victims_of_a_slow_rank_are_not_named(self):
        """Rank 5 holds up its pair; in a second group the pair's other rank comes as late."""
        timeline = Timeline(ranks=8, slower=lambda rank, i: 1.5 if rank == 5 else 1)
        self.expect(timeline, {"DC604": ["5"]})

    def test_forms(self):
        late = lambda rank, i: 0.004 if rank == 2 else 0
        timeline, expected = Timeline(late=late), {"DC601": ["2"]}
        self.expect(timeline, expected, text=timeline.json_lines(), name="a.jsonl")
        self.expect(timeline, expected, text=timeline.chrome(), name="a.json")
        self.expect(timeline, expected, text=timeline.csv(";", "\r\n"), name="b.csv")
        self.expect(timeline, expected, text="\ufeff" + timeline.csv("\t"), name="c.csv")
        named = timeline.csv().replace("rank,host,group,operation,number,iteration", "Rank,Node,Comm,Op,Seq,Step", 1)
        self.expect(timeline, expected, text=named, name="d.csv")
        self.expect(timeline, expected, text=timeline.csv().replace("0-3", '"[0, 1, 2, 3]"'), name="e.csv")

    def test_one_file_a_rank(self):
        timeline = Timeline(late=lambda rank, i: 0.004 if rank == 2 else 0)
        rows = timeline.rows
        paths = []
        for rank in range(4):
            timeline.rows = [row for row in rows if row["rank"] == rank]
            paths.append(self.write("rank%d.csv" % rank, timeline.csv()))
        self.assertEqual(self.importing(*paths).codes(), {"DC601": ["2"]})

    def test_what_is_wrong_is_said(self):
        text = Timeline(iterations=30).csv().splitlines()
        text[5] = text[5].replace("AllReduce", "").replace("attention", "").replace("gemm", "").replace("layer_norm", "")
        text[9] = "x" + text[9]
        result = self.importing(self.write("bad.csv", text))
        self.assertEqual(result.status, 2)
        self.assertIn("line 6: the row has no operation", result.err)
        self.assertIn("line 10: the row has no rank", result.err)
        result = self.importing(self.write("none.csv", "rank,start\n0,1.5\n"), options=("--format=timeline",))
        self.assertIn("no header with rank, operation, start and duration", result.err)

    def test_report_speed(self):
        path = self.write("job.csv", Timeline(late=lambda rank, i: 0.004 if rank == 2 else 0).csv())
        self.ddpcheck("import", "-q", "-o", "speed.db", path)
        out = self.ddpcheck("report", "--speed", "speed.db").stdout
        self.assertRegex(out, r"(?m)^ +2 +15\.200 +15\.200 +66% +0% +7% +\d+% +2\d% +n1$")
        self.assertRegex(out, r"AllReduce +4 +1 MiB +1 +\d+ +1\.000")
        self.assertLess(out.index("warning DC601"), out.index("Where the iterations of each rank go"))
        self.assertLess(out.index("Transfers, from"), out.index("Not checked"))
        self.assertLessEqual(max(map(len, out.splitlines())), 80)

    def test_report_speed_of_many_ranks(self):
        path = self.write("many.csv", Timeline(ranks=40, iterations=30, late=lambda rank, i: 0.004 if rank == 7 else 0).csv())
        self.ddpcheck("import", "-q", "-o", "many.db", path)
        out = self.ddpcheck("report", "--speed", "many.db").stdout
        rows = re.findall(r"(?m)^ *(\d+|others) +15\.200 .*$", out)
        self.assertEqual((rows[0], rows[-1], len(rows)), ("7", "others", 17))

    def test_speed_for_programs(self):
        path = self.write("job.csv", Timeline(late=lambda rank, i: 0.004 if rank == 2 else 0).csv())
        self.ddpcheck("import", "-q", "-o", "programs.db", path)
        lines = [json.loads(line) for line in self.ddpcheck("report", "--speed", "--json", "programs.db").stdout.splitlines()]
        ranks = [line for line in lines if line["schema"] == "ddpcheck.speed/1"]
        self.assertEqual([line["rank"] for line in ranks], [0, 1, 2, 3])
        self.assertAlmostEqual(ranks[2]["median"], 0.0152)
        self.assertAlmostEqual(ranks[2]["waiting"], 0)
        self.assertGreater(ranks[0]["waiting"], 0.0039)
        transfer = next(line for line in lines if line["schema"] == "ddpcheck.transfer/1")
        self.assertEqual((transfer["operation"], transfer["nranks"]), ("ncclAllReduce", 4))
        plain = self.ddpcheck("report", "--json", "programs.db").stdout
        self.assertNotIn("ddpcheck.speed/1", plain)
        gauges = self.ddpcheck("export", "--format", "prometheus", "programs.db").stdout
        self.assertIn('ddpcheck_iteration_seconds{node="n1",rank="2"} 0.0152', gauges)
        page = self.ddpcheck("export", "--format", "html", "programs.db").stdout
        self.assertIn("<title>rank 2, iteration 20: 26%</title>", page)
        self.assertNotIn("<title>rank 1, iteration", page)

    def test_map_of_many_ranks(self):
        """Of many ranks those that are behind; of a job in which none is, there is no map."""
        for name, ranks in ("behind", ["17", "40"]), ("even", []):
            late = lambda rank, i: 0.004 if str(rank) in ranks else 0
            path = self.write(name + ".csv", Timeline(ranks=60, iterations=30, late=late).without_kernels().csv())
            self.ddpcheck("import", "-q", "-o", name + ".db", path)
            page = self.ddpcheck("export", "--format", "html", name + ".db").stdout
            self.assertEqual("<section id=speed>" in page, bool(ranks))
            speed = page.partition("<section id=speed>")[2].partition("</section>")[0]
            self.assertEqual(re.findall(r"<text [^>]*>rank (\d+)</text>", speed), ranks)
            self.assertEqual("Of 60 ranks the 2 that are behind most" in speed, bool(ranks))
            self.assertEqual(re.findall(r"<text class=share [^>]*>(\d+%)</text>", speed), ["26%"] * len(ranks))
            if ranks:       # before what a reader of a slow job does not look for
                self.assertLess(page.index("<section id=speed>"), page.index("<section id=ranks>"))


if __name__ == "__main__":
    main()
