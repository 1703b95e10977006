"""Timelines of others: a job gives the same trace in all variants that people's tools write; rows that are none are refused."""

import collections
import gzip
import os
import sqlite3
import unittest

from importer import Importer, main

TIME = 1795267350       # of all files: where clocks don't count from 1970, the newest file's time says when the job ended
OPERATIONS = """SELECT p.rank, c.number, c.issued_ns, c.slot, c.launch, c.process
                FROM v_collective c JOIN process p ON p.id = c.process ORDER BY p.rank, c.issued_ns"""
MILLISECOND = 1000000


class Timelines(Importer):
    def copy(self, name, target=None, change=lambda content: content):
        """A sample in the test's folder, changed, with the time of all."""
        path = os.path.join(self.folder, target or name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(self.data("timeline/" + name), "rb") as file:
            content = change(file.read())
        with open(path, "wb") as file:
            file.write(content)
        os.utime(path, (TIME, TIME))
        return path

    def trace(self, *paths, status=0, options=()):
        """Imports; returns the database, open."""
        result = self.importing(*paths, options=options)
        self.assertEqual(result.status, status, result.err)
        self.err = result.err
        database = sqlite3.connect(result.database)
        self.addCleanup(database.close)
        return database

    def events(self, *paths, options=()):
        """All records, rank by rank, and the texts that they name."""
        database = self.trace(*paths, options=options)
        self.assertEqual(self.err, "")
        texts = {(process, number): text for process, number, text in database.execute("SELECT process, id, text FROM string")}
        found = database.execute("SELECT p.rank, p.host, e.process, v.realtime_ns, v.call, v.phase, e.w0, e.w1, e.w2, e.w3, e.w4, "
                                 "e.w5, e.w6, e.w7, e.w8, e.w9 FROM v_event v JOIN event e ON e.seq = v.seq "
                                 "JOIN process p ON p.id = e.process ORDER BY p.rank, e.serial, e.seq").fetchall()
        return [(row[:2] + row[3:], texts.get((row[2], row[6]), "")) for row in found]

    def operations(self, database):
        """{rank: [(number, issued, started, done)]}, times in ms after the rank's first operation started."""
        found = collections.defaultdict(list)
        for rank, number, issued, slot, launch, process in database.execute(OPERATIONS).fetchall():
            times = [database.execute("SELECT min(realtime_ns) FROM v_progress WHERE process = ? AND slot = ? AND %s >= ?" % column,
                                      (process, slot, launch)).fetchone()[0] for column in ("started", "done")]
            found[rank].append((number, issued, *times))
        return {rank: [(number, *(round((time - rows[0][2]) / MILLISECOND, 3) for time in times)) for number, *times in rows]
                for rank, rows in found.items()}

    def test_times(self):
        """Each rank's by its own clock."""
        self.assertEqual(self.operations(self.trace(self.copy("plain.csv"))), {
            0: [(0, -9.9, 0, 3), (1, 4.1, 14, 17.5), (2, 18.6, 28.5, 31.5)],
            1: [(0, -11.9, 0, 1), (1, 2.1, 14.5, 15.5), (2, 16.6, 28.5, 29.5)]})

    def test_variants(self):
        """Other orders of columns, quotes, floats with gaps, JSON lines, Chrome events."""
        plain = self.events(self.copy("plain.csv"))
        self.assertGreater(len(plain), 30)
        for name in ("order.csv", "pandas.csv", "lines.jsonl", "chrome.json"):
            with self.subTest(name):
                self.assertEqual(self.events(self.copy(name)), plain)

    def test_encodings(self):
        """What editors and other systems do to a file."""
        plain = self.events(self.copy("plain.csv"))
        csv = {
            "bom": lambda text: b"\xef\xbb\xbf" + text, "crlf": lambda text: text.replace(b"\n", b"\r\n"),
            "bom-crlf": lambda text: b"\xef\xbb\xbf" + text.replace(b"\n", b"\r\n"),
            "tabs": lambda text: text.replace(b",", b"\t"), "semicolons": lambda text: text.replace(b",", b";"),
            "capitals": lambda text: text.split(b"\n")[0].title() + text[text.index(b"\n"):],
            "no-newline": lambda text: text.rstrip(b"\n"), "comment-sign": lambda text: b"#" + text, "packed": gzip.compress,
        }
        json = {"bom": csv["bom"], "crlf": csv["crlf"], "packed": gzip.compress}
        for sample, changes in (("plain.csv", csv), ("lines.jsonl", json), ("chrome.json", json)):
            for name, change in changes.items():
                with self.subTest(sample=sample, change=name):
                    self.assertEqual(self.events(self.copy(sample, name + "-" + sample, change)), plain)

    def test_json_arrays(self):
        """The rows as one array; the events of Chrome without the object around them."""
        plain = self.events(self.copy("plain.csv"))
        rows = self.copy("lines.jsonl", "rows.json",
                         lambda text: b"[\n" + b",\n".join(filter(None, text.split(b"\n"))) + b"\n]\n")
        self.assertEqual(self.events(rows), plain)
        bare = self.copy("chrome.json", "bare.json", lambda text: text[text.index(b"["):text.rindex(b"]") + 1])
        self.assertEqual(self.events(bare), plain)

    def test_a_file_for_each_rank(self):
        plain = self.events(self.copy("plain.csv"))
        for rank in (b"0", b"1"):
            self.copy("plain.csv", "ranks/rank%s.csv" % rank.decode(),
                      lambda text: b"".join(line for line in text.splitlines(True) if line.startswith((b"rank", rank + b","))))
        self.assertEqual(self.events(os.path.join(self.folder, "ranks")), plain)

    def test_least_columns(self):
        """Without launch times, an operation was issued when it started."""
        self.assertEqual(self.operations(self.trace(self.copy("least.csv"))), {
            0: [(0, 0, 0, 3), (1, 14, 14, 17.5), (2, 28.5, 28.5, 31.5)],
            1: [(0, 0, 0, 1), (1, 14.5, 14.5, 15.5), (2, 28.5, 28.5, 29.5)]})

    def test_groups_named_by_ranks(self):
        """Lists of ranks in several notations, and a pair's sends meet the peer's receives."""
        database = self.trace(self.copy("stages.csv"))
        members = collections.defaultdict(set)
        for communicator, rank in database.execute("SELECT communicator, process_rank FROM v_member"):
            members[communicator].add(rank)
        self.assertEqual(sorted(map(sorted, members.values())), [[0, 1], [0, 2], [1, 3]])
        found = database.execute("SELECT p.rank, c.name, c.root FROM v_collective c JOIN process p ON p.id = c.process "
                                 "WHERE c.name <> 'ncclAllReduce' ORDER BY p.rank, c.issued_ns").fetchall()
        self.assertEqual(found, [(0, "ncclSend", 1), (0, "ncclRecv", 1), (1, "ncclSend", 1), (2, "ncclRecv", 0), (2, "ncclSend", 0),
                                 (3, "ncclRecv", 0)])

    def test_rows_that_are_none(self):
        """Each is named with its line, and the others are imported."""
        rows = {"no rank": ",dp0,AllReduce,100.1,0.001", "no operation": "0,dp0,,100.1,0.001",
                "no start": "0,dp0,AllReduce,soon,0.001",
                "no duration": "0,dp0,AllReduce,100.1,-0.001", "short": "0,dp0"}
        plain = self.operations(self.trace(self.copy("least.csv")))
        for number, (wrong, row) in enumerate(rows.items()):
            with self.subTest(wrong):
                path = self.copy("least.csv", "wrong%d.csv" % number, lambda text: text + row.encode() + b"\n")
                self.assertEqual(self.operations(self.trace(path, status=2)), plain)
                self.assertIn("line 14", self.err)

    def test_no_timeline(self):
        for text in ("time,value\n1,2\n", "rank,operation\n0,AllReduce\n", '{"rank": 0}\n', ""):
            with self.subTest(text):
                result = self.importing(self.write("none%d" % self.count, text), options=("--format", "timeline"))
                self.assertEqual(result.status, 2)
                self.assertTrue(result.err)


if __name__ == "__main__":
    main()
