"""A trace from somebody who wants more than to be read: what is printed can't steer a terminal or disguise itself, a
spreadsheet runs no cell, and the database can neither go on for ever nor be written."""

import csv
import os
import shutil
import sqlite3
import unittest

from tool import Tool, main

# ESC, BEL, CR, C1's CSI, right-to-left override and isolate, a byte that is no UTF-8.
STEERING = "a\x1b[31mb\x07c\rd\u009b2Je\u202ef\u2066g"
FORBIDDEN = [b"\x1b", b"\x07", b"\r", b"\xc2\x9b", b"\xe2\x80\xae", b"\xe2\x81\xa6", b"\xff"]


class Hostile(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.tool = Tool(main.build)
        cls.tool.make("missing")
        cls.steering = cls.change("steering", lambda connection: (
            connection.execute("UPDATE process SET host = ?, program = ?, command = ?", [STEERING] * 3),
            connection.execute("UPDATE symbol SET function = CAST(? AS TEXT)", [STEERING.encode() + b"\xff"])))

    @classmethod
    def tearDownClass(cls):
        cls.tool.close()

    @classmethod
    def change(cls, name, change):
        """A copy of a good trace, changed; its database's path."""
        folder = cls.tool.path(name)
        shutil.copytree(cls.tool.path("missing"), folder)
        database = os.path.join(folder, "node-01.db")
        connection = sqlite3.connect(database)
        connection.text_factory = bytes
        with connection:
            change(connection)
        connection.close()
        return database

    def printed(self, *arguments):
        path = self.tool.path("printed")
        with open(path, "wb") as out:
            status, _, err = self.tool.call(*arguments, stdout=out)
        with open(path, "rb") as out:
            return status, out.read(), err.encode(errors="surrogateescape")

    def test_nothing_steers(self):
        for arguments in (["report"], ["report", "--all-ranks"], ["report", "--gen-suppressions"],
                          ["diff", self.tool.path("missing")], ["export", "--format", "html"], ["export", "--format", "github"],
                          ["export", "--format", "junit"], ["sql"]):
            more = ["SELECT host, program, command FROM process"] if arguments == ["sql"] else []
            status, out, err = self.printed(*arguments, self.steering, *more)
            self.assertIn(status, (0, 1, 3), err)
            self.assertGreater(len(out), 20, arguments)
            for bytes_ in FORBIDDEN:
                self.assertNotIn(bytes_, out + err, arguments)

    def test_messages_do_not_steer(self):
        status, _, err = self.printed("report", self.tool.path("no" + STEERING))
        self.assertEqual(status, 2)
        for bytes_ in FORBIDDEN:
            self.assertNotIn(bytes_, err)

    def test_cells_do_not_run(self):
        for text, cell in (("=1+1", "'=1+1"), ("+cmd|' /C calc'!A0", "'+cmd|' /C calc'!A0"), ("@SUM(A1)", "'@SUM(A1)"), ("-1+1", "'-1+1"),
                           ("-12.5", "-12.5"), ("+3", "+3"), ("plain", "plain")):
            _, out, _ = self.tool.call("sql", "--csv", "missing", "SELECT '%s' AS a, 1 AS b" % text.replace("'", "''"))
            self.assertEqual(list(csv.reader(out.splitlines()))[1], [cell, "1"])
        _, out, _ = self.tool.call("sql", "--csv", "missing", "SELECT -5 AS a")
        self.assertEqual(out.split(), ["a", "-5"])

    def test_endless_view(self):
        database = self.change("endless", lambda connection: (
            connection.execute("ALTER TABLE event RENAME TO event_before"),
            connection.execute("CREATE VIEW event AS WITH RECURSIVE more(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM more) "
                               "SELECT n AS seq, e.* FROM more JOIN event_before e")))
        status, _, err = self.tool.call("report", database)
        self.assertEqual(status, 2)
        self.assertIn("'event' is not a plain table", err)

    def test_sql_only_reads(self):
        for query in ("ATTACH '%s' AS other" % self.tool.path("new.db"), "VACUUM INTO '%s'" % self.tool.path("new.db"),
                      "PRAGMA query_only = OFF", "PRAGMA writable_schema = ON", "DELETE FROM event", "CREATE TEMP TABLE t(a)",
                      "SELECT load_extension('/tmp/x.so')"):
            status, _, err = self.tool.call("sql", "missing", query)
            self.assertEqual(status, 2, query)
            self.assertTrue("only reads" in err or "load_extension" in err, (query, err))
        self.assertFalse(os.path.exists(self.tool.path("new.db")))
        for query in ("PRAGMA table_info(event)", "PRAGMA user_version", "EXPLAIN SELECT 1", "SELECT count(*) FROM sqlite_master",
                      "SELECT name FROM pragma_table_info('event')", "WITH n(x) AS (SELECT 1) SELECT max(x) FROM n"):
            status, _, err = self.tool.call("sql", "missing", query)
            self.assertEqual(status, 0, (query, err))


if __name__ == "__main__":
    main()
