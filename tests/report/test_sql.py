"""ddpcheck sql: what it prints in each format, that it can't write, its prompt on a terminal, and docs/sql.md."""

import csv
import glob
import io
import json
import os
import pty
import re
import select
import signal
import sqlite3
import subprocess
import time
import unittest

from tool import Tool, main

PAGE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "docs", "sql.md")
# Writes, attaches, makes files: all that a trace must be safe from.
WRITES = ("DELETE FROM event", "DROP TABLE event", "UPDATE process SET rank = 7", "INSERT INTO meta VALUES ('a', 'b')",
          "CREATE TABLE mine (a)", "CREATE TEMP TABLE mine (a)", "VACUUM INTO 'copy.db'", "VACUUM", "ATTACH 'other.db' AS other",
          "PRAGMA user_version = 7", "PRAGMA journal_mode = DELETE", "SELECT 1; DELETE FROM event; SELECT 2")
ENDLESS = "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r) SELECT count(*) FROM r;"


class Terminal:
    """ddpcheck sql with a terminal, as somebody who types sees it."""

    def __init__(self, program, *arguments):
        self.pid, self.terminal = pty.fork()
        if self.pid == 0:
            os.execv(program, [program, *arguments])
        self.text = ""

    def until(self, mark, timeout=300):
        end = time.monotonic() + timeout
        while mark not in self.text:
            ready, _, _ = select.select([self.terminal], [], [], max(0, end - time.monotonic()))
            if not ready:
                raise AssertionError("no %r in %d s: %r" % (mark, timeout, self.text))
            try:
                self.text += os.read(self.terminal, 65536).decode()
            except OSError:
                raise AssertionError("ended without %r: %r" % (mark, self.text))
        seen, self.text = self.text.split(mark, 1)
        return seen

    def type(self, line):
        os.write(self.terminal, line.encode() + b"\n")

    def status(self):
        """Its exit status, once it has ended by itself."""
        end = time.monotonic() + 300
        while time.monotonic() < end:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                os.close(self.terminal)
                return os.waitstatus_to_exitcode(status)
            time.sleep(0.01)
        os.kill(self.pid, signal.SIGKILL)
        raise AssertionError("it did not end")


class Sql(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.tool = Tool(main.build)
        cls.tool.make("missing")
        cls.tool.make("hosts")
        cls.database = cls.tool.path("missing/node-01.db")

    @classmethod
    def tearDownClass(cls):
        cls.tool.close()

    def sql(self, *arguments):
        status, out, err = self.tool.call("sql", *arguments)
        self.assertEqual((status, err), (0, ""))
        return out

    def expected(self, query):
        connection = sqlite3.connect("file:%s?mode=ro" % self.database, uri=True)
        try:
            return connection.execute(query).fetchall()
        finally:
            connection.close()

    def test_text_is_aligned(self):
        query = "SELECT 'a' AS name, 1 AS n UNION ALL SELECT 'ä中bcd', 1000 UNION ALL SELECT NULL, NULL"
        _, out, _ = self.tool.call("sql", "missing", query, LC_ALL="C.UTF-8")
        self.assertEqual(out, "name       n\n------  ----\na          1\nä中bcd  1000\nNULL    NULL\n")
        out = self.sql(self.database, "SELECT 'x' AS name, 12 AS n")
        self.assertEqual(out, "name   n\n----  --\nx     12\n")

    def test_text_cannot_steer_the_terminal(self):
        out = self.sql("missing", "SELECT char(27) || '[31mred' || char(10) AS color")
        self.assertNotIn("\x1b", out)
        self.assertEqual(len(out.splitlines()), 3)

    def test_formats_agree_with_sqlite(self):
        query = "SELECT rank, name, count, datatype, redop, root, returned_ns FROM v_collective ORDER BY seq"
        rows = self.expected(query)
        self.assertGreater(len(rows), 5)
        lines = [json.loads(line) for line in self.sql("--json", "missing", query).splitlines()]
        self.assertEqual([tuple(line.values()) for line in lines], rows)
        table = list(csv.reader(io.StringIO(self.sql("--csv", "missing", query))))
        self.assertEqual(table[0], list(lines[0]))
        self.assertEqual(table[1:], [["" if cell is None else str(cell) for cell in row] for row in rows])
        text = self.sql("missing", query).splitlines()
        self.assertEqual([line.split() for line in text[2:]], [["NULL" if cell is None else str(cell) for cell in row] for row in rows])

    def test_operations_have_a_label_times_and_a_state(self):
        lines = [json.loads(line) for line in self.sql("--json", "missing", "SELECT * FROM v_collective ORDER BY number, rank").splitlines()]
        self.assertEqual({line["label"] for line in lines}, {"comm 5ae7"})
        self.assertEqual([line["state"] for line in lines if line["number"] < 3], 12 * ["done"])
        self.assertEqual([line["state"] for line in lines if line["number"] == 3], 3 * ["running"])
        for line in lines:
            self.assertLessEqual(line["issued_ns"], line["begin_ns"])
            self.assertEqual(line["end_ns"] is None, line["state"] == "running")

    def test_a_query_that_ends_too_early(self):
        status, _, err = self.tool.call("sql", "missing", "select")
        self.assertEqual((status, err), (2, "ddpcheck: the query ends before it is complete: select\n"))

    def test_odd_values(self):
        line = json.loads(self.sql("--json", "missing", "SELECT 1 AS a, 2 AS a, x'00ff' AS blob, 1e999 AS big, cast(x'ff' AS text) AS bad"))
        self.assertEqual(line, {"a": 1, "a:2": 2, "blob": "x'00ff'", "big": None, "bad": "?"})
        row, = list(csv.reader(io.StringIO(self.sql("--csv", "missing", "SELECT 'a,\"b' AS x, 'c' || char(10) || 'd' AS y"))))[1:]
        self.assertEqual(row, ["a,\"b", "c\nd"])

    def test_long_output_comes_while_the_query_runs(self):
        process = subprocess.Popen([self.tool.program, "sql", "missing", ENDLESS.replace("count(*)", "n")], cwd=self.tool.folder,
                                   stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        try:
            self.assertGreater(len(process.stdout.read(1 << 20)), 1 << 19)
        finally:
            process.kill()
            process.stdout.close()
            process.wait()

    def test_nothing_can_be_written(self):
        def content():
            with open(self.database, "rb") as file:
                return file.read()
        before = content()
        for query in WRITES:
            status, out, err = self.tool.call("sql", "missing", query)
            if query.startswith("PRAGMA journal_mode") and status == 0:     # says what the mode is
                continue
            self.assertEqual(status, 2, (query, out))
            self.assertRegex(err, r"^ddpcheck: .*(only reads|readonly|read-only|query_only)", query)
        self.assertEqual(content(), before)
        self.assertEqual(glob.glob(self.tool.path("*.db")), [])

    def test_errors(self):
        for arguments, message in (
                (("missing", "SELECT absent FROM v_event"), r'no such column: absent, at "absent FROM v_event"'),
                (("missing", "SELEC 1"), r'near "SELEC": syntax error'),
                (("missing", "SELECT 'a"), r"unrecognized token"),
                (("hosts", "SELECT 1"), r"2 databases \(.*node-01.db, .*node-02.db.*\): ask one of them"),
                (("nowhere", "SELECT 1"), r"nowhere"),
                ((self.tool.program, "SELECT 1"), r"(?s)it is in no format that can be imported.*is not a trace"),
                ((), r"missing DIR or DATABASE"), (("missing", "SELECT", "1"), r"in quotes"),
                (("--json", "--csv", "missing", "SELECT 1"), r"exclude each other")):
            status, out, err = self.tool.call("sql", *arguments)
            self.assertEqual((status, out), (2, ""), arguments)
            self.assertRegex(err, message)
            lines = 2 if "imported" in message else 1    # what is no trace may be a log
            self.assertTrue(err.startswith("ddpcheck") and err.count("\n") == lines, err)

    def test_views_are_described(self):
        out = self.sql("--views", "missing")
        names = [name for name, in self.expected("SELECT name FROM sqlite_schema WHERE type IN ('table', 'view') "
                                                 "AND name NOT LIKE 'sqlite@_%' ESCAPE '@'")]
        self.assertGreater(len(names), 15)
        for name in names:
            columns = [column for column, in self.expected("SELECT name FROM pragma_table_info('%s')" % name)]
            entry = re.search(r"^%s  +\S.*\n((?: +.*\n)+)" % name, out, re.M)
            self.assertTrue(entry, "%s has no description (cmd/sql/sql_views.c)" % name)
            self.assertEqual(re.findall(r"\w+", entry.group(1)), columns)

    def test_a_query_on_standard_input(self):
        done = subprocess.run([self.tool.program, "sql", "missing"], cwd=self.tool.folder, capture_output=True, text=True,
                              input="-- two\nSELECT 1 AS one;\nSELECT 2 AS two\n", timeout=300)
        self.assertEqual((done.returncode, done.stdout.split(), done.stderr), (0, ["one", "---", "1", "two", "---", "2"], ""))

    def test_commands_that_begin_with_a_dot(self):
        """As an argument and on standard input they do what they do at the prompt."""
        names = [name for name, in self.expected("SELECT name FROM sqlite_schema WHERE type = 'view'")]
        self.assertGreater(len(names), 5)
        done = subprocess.run([self.tool.program, "sql", "missing"], cwd=self.tool.folder, capture_output=True, text=True,
                              input=".tables\n", timeout=300)
        self.assertEqual(self.sql("missing", ".tables"), done.stdout)
        for name in names:
            self.assertIn("view   %s\n" % name, done.stdout)
            self.assertIn("CREATE VIEW %s " % name, self.sql("missing", ".schema " + name))
        status, out, err = self.tool.call("sql", "missing", ".indexes")
        self.assertEqual((status, out, err), (2, "", "ddpcheck: no .indexes; .help lists what there is\n"))

    def test_the_prompt(self):
        terminal = Terminal(self.tool.program, "sql", self.tool.path("missing"))
        terminal.until("ddpcheck> ")
        terminal.type("SELECT 40 + 2")
        terminal.until("...> ")
        terminal.type("AS answer;")
        self.assertRegex(terminal.until("ddpcheck> "), r"answer\r\n-+\r\n +42\r\n")
        terminal.type("SELECT wrong;")
        self.assertIn("no such column: wrong", terminal.until("ddpcheck> "))
        terminal.type(".views")
        self.assertIn("v_collective", terminal.until("ddpcheck> "))
        terminal.type(".tables")
        self.assertIn("view   v_member", terminal.until("ddpcheck> "))
        terminal.type(".schema v_member")
        self.assertIn("CREATE VIEW v_member", terminal.until("ddpcheck> "))
        terminal.type(".indexes")
        self.assertIn("no .indexes; .help lists", terminal.until("ddpcheck> "))
        terminal.type("SELECT 'half")
        terminal.until("...> ")
        os.write(terminal.terminal, b"\x03")
        terminal.until("ddpcheck> ")
        terminal.type("SELECT 'star' || 'ted'; " + ENDLESS)     # what is typed after a ';' belongs to the same line
        terminal.until("started")
        os.write(terminal.terminal, b"\x03")
        terminal.until("interrupted")
        terminal.until("ddpcheck> ")
        terminal.type(".quit")
        self.assertEqual(terminal.status(), 0)

    def test_the_page(self):
        with open(PAGE) as page:
            found = re.findall(r"^    ddpcheck sql (?:ddpcheck-trace )?(.*)$", page.read(), re.M)
        self.assertGreater(len(found), 4)
        os.symlink(self.tool.path("missing"), self.tool.path("ddpcheck-trace"))
        for command in found:
            line = command if "ddpcheck-trace" in command else "ddpcheck-trace " + command
            done = subprocess.run(["bash", "-c", "%s sql %s" % (self.tool.program, line)], cwd=self.tool.folder, timeout=300,
                                  stdin=subprocess.DEVNULL, capture_output=True, text=True)
            self.assertEqual((done.returncode, done.stderr), (0, ""), line)


if __name__ == "__main__":
    main()
