"""Operations in other formats: Chrome's JSON, Perfetto's protobuf by protoc, Prometheus' text, CSV, each against what the
database says."""

import collections
import csv
import io
import json
import os
import re
import shutil
import subprocess
import sys
import unittest

from jobs import Jobs

HERE = os.path.dirname(os.path.abspath(__file__))
BUILD = sys.argv.pop(1)
EVENTS = "SELECT count(*) FROM v_collective"


def setUpModule():
    global JOBS
    JOBS = Jobs(BUILD)


def tearDownModule():
    JOBS.close()


def query(trace, sql):
    JOBS.line.trace = os.path.join(JOBS.folder, trace)
    return JOBS.line.query(sql)


def text_format(text):
    """protoc's text format as nested lists of (name, value)."""
    stack = [[]]
    for line in text.splitlines():
        line = line.strip()
        if line.endswith("{"):
            stack.append([])
            stack[-2].append((line[:-1].strip(), stack[-1]))
        elif line == "}":
            stack.pop()
        else:
            name, value = line.split(": ", 1)
            stack[-1].append((name, json.loads(value) if value.startswith('"') else int(value) if re.fullmatch(r"-?\d+", value) else value))
    assert len(stack) == 1
    return stack[0]


class Table(unittest.TestCase):
    def rows(self, trace):
        text = JOBS.export("csv", trace)
        self.assertTrue(text.endswith("\n"))
        return list(csv.DictReader(io.StringIO(text, newline=""), strict=True))

    def test_rows_are_those_of_the_view(self):
        for trace in ("hang", "clean"):
            rows = self.rows(trace)
            key = ("communicator", "comm_rank", "number", "name", "count", "datatype", "sendbuff", "recvbuff", "stream", "issued_ns", "pid")
            view = [column if column != "comm_rank" else "rank" for column in key]
            expected = query(trace, "SELECT %s FROM v_collective" % ", ".join(view))
            self.assertEqual(sorted(tuple(row[name] for name in key) for row in rows), sorted(tuple(map(str, row)) for row in expected))
            for row in rows:
                self.assertNotIn(None, row)
                if row["end_ns"]:
                    self.assertLessEqual(int(row["issued_ns"]), int(row["begin_ns"]))
                    self.assertLessEqual(int(row["begin_ns"]), int(row["end_ns"]))
                self.assertEqual(row["state"] == "done", row["end_ns"] != "")

    def test_what_hung_never_ended(self):
        left = {(row["rank"], row["name"]) for row in self.rows("hang") if row["state"] == "running"}
        self.assertEqual(left, {("0", "ncclAllReduce"), ("1", "ncclAllReduce"), ("2", "ncclAllReduce"), ("3", "ncclBroadcast")})
        self.assertEqual({row["state"] for row in self.rows("clean")}, {"done"})


class Chrome(unittest.TestCase):
    def test_events(self):
        for trace, ranks in (("hang", 4), ("clean", 2)):
            document = json.loads(JOBS.export("chrome", trace))
            events = document["traceEvents"]
            nccl = [event for event in events if event.get("cat") == "nccl" and event["ph"] in "XB"]
            self.assertEqual(len(nccl), query(trace, EVENTS)[0][0])
            self.assertEqual({event["pid"] for event in nccl}, set(range(ranks)))
            self.assertEqual(document["distributedInfo"]["world_size"], ranks)
            named = {event["pid"]: event["args"]["name"] for event in events if event.get("name") == "process_name"}
            self.assertEqual({name.split(" (")[0] for name in named.values()}, {"rank %d" % rank for rank in range(ranks)})
            for event in nccl:
                args = event["args"]
                self.assertEqual(args["Group size"], ranks)
                self.assertEqual(json.loads(args["Process Group Ranks"]), list(range(ranks)))
                self.assertEqual(event["name"].split(" #")[1], str(args["Seq"]))
                self.assertEqual(args["Rank"], event["pid"])
                self.assertIn(args["dtype"], ("Float", "Int", "UInt64"))
                self.assertEqual(args["State"] == "done", event["ph"] == "X")
                factor = ranks if args["Collective name"] == "_allgather_base" else 1
                self.assertEqual(args["Out msg nelems"], args["In msg nelems"] * factor)
            self.check_tracks(events)
            self.check_flows(events)

    def check_tracks(self, events):
        """Slices of one track nest or follow each other; every track has a name."""
        named = {(event["pid"], event["tid"]) for event in events if event.get("name") == "thread_name"}
        tracks = collections.defaultdict(list)
        for event in events:
            if event["ph"] == "X":
                tracks[event["pid"], event["tid"]].append((round(event["ts"] * 1000), round((event["ts"] + event["dur"]) * 1000)))
        self.assertTrue(tracks)
        self.assertLessEqual(set(tracks), named)
        for slices in tracks.values():
            slices.sort()
            for one, other in zip(slices, slices[1:]):
                self.assertTrue(one[1] <= other[0] + 1 or one == other, (one, other))
        depth = collections.Counter()
        for event in events:
            if event["ph"] in "BE" and event.get("cat") != "nccl":
                depth[event["pid"], event["tid"]] += 1 if event["ph"] == "B" else -1
                self.assertGreaterEqual(depth[event["pid"], event["tid"]], 0)

    def check_flows(self, events):
        starts = {event["id"]: event for event in events if event["ph"] == "s"}
        ends = {event["id"]: event for event in events if event["ph"] == "f"}
        self.assertTrue(starts)
        self.assertEqual(set(starts), set(ends))
        self.assertEqual(len(starts) + len(ends), sum(event["ph"] in "sf" for event in events))
        slices = collections.defaultdict(list)
        for event in events:
            if event.get("cat") == "nccl" and event["ph"] in "XB":
                slices[event["pid"], event["tid"]].append((event["ts"], event["ts"] + event.get("dur", 1e12), event["args"]["Seq"]))
        for flow in starts:
            self.assertLessEqual(starts[flow]["ts"], ends[flow]["ts"])      # else Perfetto drops it
            self.assertNotEqual(starts[flow]["pid"], ends[flow]["pid"])
            joined = [{number for begin, end, number in slices[event["pid"], event["tid"]] if begin <= event["ts"] < end}
                      for event in (starts[flow], ends[flow])]
            self.assertTrue(joined[0] & joined[1], "an arrow joins %s with %s" % tuple(joined))

    def test_findings_are_marked(self):
        marks = [event for event in json.loads(JOBS.export("chrome", "hang"))["traceEvents"] if event["ph"] == "i"]
        self.assertIn("DC201", {mark["name"] for mark in marks})
        self.assertEqual([event for event in json.loads(JOBS.export("chrome", "hang", "--disable", "DCxxx"))["traceEvents"]
                          if event["ph"] == "i"], [])


@unittest.skipUnless(shutil.which("protoc"), "needs protoc")
class Perfetto(unittest.TestCase):
    def decode(self, path):
        with open(path, "rb") as file:
            done = subprocess.run(["protoc", "--proto_path", HERE, "--decode=perfetto.protos.Trace", "perfetto.proto"], stdin=file,
                                  capture_output=True, text=True, timeout=300)
        return done

    def test_decoded(self):
        for trace in ("hang", "clean"):
            path = os.path.join(JOBS.folder, trace + ".pftrace")
            JOBS.export("perfetto", "-o", path, trace)
            done = self.decode(path)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            self.assertNotRegex(done.stdout, r"(?m)^\s*\d+[:{ ]")       # a field that perfetto.proto does not know
            chrome = json.loads(JOBS.export("chrome", trace))["traceEvents"]
            self.check(text_format(done.stdout), chrome)

    def check(self, packets, chrome):
        names, texts, tracks, open_slices, states = {}, {}, {}, collections.Counter(), collections.Counter()
        flows = collections.defaultdict(set)
        for index, (kind, packet) in enumerate(packets):
            self.assertEqual(kind, "packet")
            fields = dict(packet)
            self.assertEqual(fields["sequence_flags"], 3 if index == 0 else 2)
            for table, entry in fields.get("interned_data", []):
                (names if table != "debug_annotation_string_values" else texts)[table, dict(entry)["iid"]] = dict(entry)["name"]
            if "track_descriptor" in fields:
                track = dict(fields["track_descriptor"])
                tracks[track["uuid"]] = dict(track["process"])["process_name"] if "process" in track else track["name"]
                if "parent_uuid" in track:
                    self.assertIn(track["parent_uuid"], tracks)
                continue
            event = dict(fields["track_event"])
            self.assertIn(event["track_uuid"], tracks)
            if event["type"] == "TYPE_SLICE_END":
                open_slices[event["track_uuid"]] -= 1
            if event["type"] != "TYPE_SLICE_BEGIN":
                continue
            open_slices[event["track_uuid"]] += 1
            self.assertIn(("event_names", event["name_iid"]), names)
            if names["event_categories", event["category_iids"]] != "nccl":
                continue
            args = {names["debug_annotation_names", dict(value)["name_iid"]]: dict(value) for name, value in fields["track_event"]
                    if name == "debug_annotations"}
            states[texts["debug_annotation_string_values", args["State"]["string_value_iid"]]] += 1
            flows[event["flow_ids"]].add(args["Rank"]["int_value"])
        self.assertTrue(all(count >= 0 for count in open_slices.values()))
        self.assertEqual(states, collections.Counter(event["args"]["State"] for event in chrome
                                                     if event.get("cat") == "nccl" and event["ph"] in "XB"))
        self.assertEqual(max(map(len, flows.values())), sum(event.get("name") == "process_name" for event in chrome))

    def test_a_cut_file_opens_up_to_there(self):
        path = os.path.join(JOBS.folder, "cut.pftrace")
        JOBS.export("perfetto", "-o", path, "clean")
        with open(path, "rb") as file:
            whole = file.read()
        at = size = 0                   # cut behind a packet: a reader takes all before it
        while at < len(whole) / 2:
            self.assertEqual(whole[at], 0x0a)
            size, shift, head = 0, 0, at + 1
            while True:
                size |= (whole[head] & 0x7f) << shift
                shift += 7
                head += 1
                if not whole[head - 1] & 0x80:
                    break
            at = head + size
        with open(path, "wb") as file:
            file.write(whole[:at])
        done = self.decode(path)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertGreater(done.stdout.count("track_event"), 10)


class Prometheus(unittest.TestCase):
    LINE = re.compile(r'([a-z_]+)(?:\{((?:[a-z_]+="(?:[^"\\\n]|\\[\\"n])*",?)*)\})? (-?\d+(?:\.\d+)?)')

    def metrics(self, trace):
        text = JOBS.export("prometheus", trace)
        self.assertTrue(text.endswith("\n"))
        if shutil.which("promtool"):
            done = subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True, text=True, timeout=120)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        types, values, last = {}, {}, None
        for line in text.splitlines():
            if line.startswith("# "):
                words = line.split(" ", 3)
                if words[1] == "TYPE":
                    self.assertNotIn(words[2], types)
                    types[words[2]] = words[3]
                    self.assertEqual(words[3] == "counter", words[2].endswith("_total"))
                continue
            name, labels, value = self.LINE.fullmatch(line).groups()
            self.assertIn(name, types)
            self.assertTrue(last in (None, name) or name not in {key[0] for key in values}, "%s in two places" % name)
            last = name
            key = (name, tuple(re.findall(r'([a-z_]+)="((?:[^"\\]|\\.)*)"', labels or "")))
            self.assertNotIn(key, values)
            values[key] = float(value)
        return values

    def test_counts(self):
        for trace in ("hang", "clean"):
            values = self.metrics(trace)
            found = {(dict(labels)["rank"], dict(labels)["comm_name"], dict(labels)["collective"]): int(value)
                     for (name, labels), value in values.items() if name == "ddpcheck_collectives_total"}
            expected = query(trace, "SELECT v.rank, coalesce(substr(c.label, 6), 'unnamed'), substr(v.name, 5), count(*) FROM v_collective v "
                             "LEFT JOIN comm_label c ON printf('%016x', c.comm) = v.communicator GROUP BY 1, 2, 3")
            self.assertEqual(found, {(str(rank), comm, name): count for rank, comm, name, count in expected})
            codes = {dict(labels)["code"]: value for (name, labels), value in values.items() if name == "ddpcheck_findings" and value}
            self.assertEqual(codes, dict(collections.Counter(finding["code"] for finding in JOBS.findings(trace))))
        self.assertNotIn("DC201", codes)
        silent = [value for (name, _), value in self.metrics("hang").items() if name == "ddpcheck_seconds_since_progress"]
        self.assertEqual(len(silent), 4)
        self.assertGreater(min(silent), 1)      # it hung until --timeout ended it


if __name__ == "__main__":
    unittest.main()
