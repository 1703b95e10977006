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

    def test_false_tables(self):
        """Of any case, also where the schema's own names are forged; and columns that are computed when they are read."""
        def other_case(connection):
            connection.execute("ALTER TABLE event RENAME TO event_before")
            connection.execute("CREATE VIEW EVENT AS WITH RECURSIVE more(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM more) "
                               "SELECT n AS seq, e.* FROM more JOIN event_before e")

        def computed(connection):
            connection.execute("ALTER TABLE meta ADD COLUMN more AS (hex(zeroblob(30000000)))")

        def module(connection):
            connection.execute("CREATE VIRTUAL TABLE extra USING fts5(a)")

        for name, change, said in (("case", other_case, "'EVENT'"), ("computed", computed, "'meta'"), ("module", module, "'extra'")):
            status, _, err = self.tool.call("report", self.change(name, change))
            self.assertEqual(status, 2, (name, err))
            self.assertIn(said + " is not a plain table", err)

    def test_modules_are_plain_files_of_this_host(self):
        """What a trace names is opened only where it was recorded, never a pipe, and no link out of its directory."""
        folder = self.tool.path("objects")
        os.mkdir(folder)
        pipe, link, soname, program = (os.path.join(folder, name) for name in ("pipe", "link", "soname", "program"))
        os.mkfifo(pipe)
        shutil.copy(self.tool.program, program)
        os.symlink(self.tool.program, link)
        os.symlink("program", soname)
        here = os.uname().nodename
        for host, path, is_opened in ((here, program, True), (here, soname, True), (here, link, False), (here, pipe, False),
                                      ("elsewhere", program, False)):
            def name_module(connection, host=host, path=path):
                connection.execute("UPDATE process SET host = ?", [host])
                connection.execute("DELETE FROM symbol")
                connection.execute("DELETE FROM module")
                connection.execute("UPDATE finding_side SET where_stack = 4096, where_stack_is_address = 1, stack = 4096, stack_is_address = 1")
                connection.execute("INSERT OR REPLACE INTO string SELECT id, 77, ?, ? FROM process", [len(path), path])
                connection.execute("INSERT INTO module(process, base, start, \"end\", path, build_id) SELECT id, 0, 0, 1 << 40, 77, '' FROM process")
            database = self.change("module-%s-%s" % (host, os.path.basename(path)), name_module)
            status, out, err = self.tool.call("report", "--json", database)
            self.assertIn(status, (0, 1), err)
            self.assertIn(path, out)
            is_refused = "no such object file here" in out or "recorded on another host" in out
            self.assertEqual(is_refused, not is_opened, (host, path, out))

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
