"""ddpcheck mcp: JSON-RPC on standard input and output, with the answers that the commands give."""

import json
import sqlite3
import subprocess
import sys
import unittest

from jobs import Jobs

BUILD = sys.argv.pop(1)


def setUpModule():
    global JOBS
    JOBS = Jobs(BUILD)


def tearDownModule():
    JOBS.close()


class Mcp(unittest.TestCase):
    def talk(self, *requests, trace="hang"):
        """The answers to the lines; a request that is no text is sent as JSON."""
        lines = [each if isinstance(each, str) else json.dumps({"jsonrpc": "2.0", **each}) for each in requests]
        done = subprocess.run([JOBS.tool, "mcp", trace], cwd=JOBS.folder, input="".join(line + "\n" for line in lines), text=True,
                              capture_output=True, timeout=300)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return [json.loads(line) for line in done.stdout.splitlines()]

    def call(self, name, trace="hang", **arguments):
        answer, = self.talk({"id": 1, "method": "tools/call", "params": {"name": name, "arguments": arguments}}, trace=trace)
        result = answer["result"]
        self.assertEqual([part["type"] for part in result["content"]], ["text"])
        return result["isError"], result["content"][0]["text"]

    def test_greeting(self):
        for asked, given in (("2025-06-18", "2025-06-18"), ("2024-11-05", "2024-11-05"), ("1999-01-01", "2025-06-18")):
            answers = self.talk({"id": 0, "method": "initialize", "params": {"protocolVersion": asked, "capabilities": {}}},
                                {"method": "notifications/initialized"}, {"id": "a", "method": "ping"})
            self.assertEqual([answer["id"] for answer in answers], [0, "a"])
            self.assertEqual(answers[0]["result"]["protocolVersion"], given)
            self.assertEqual(answers[0]["result"]["serverInfo"]["name"], "ddpcheck")
            self.assertEqual(answers[1]["result"], {})

    def test_tools(self):
        answer, = self.talk({"id": 1, "method": "tools/list"})
        tools = {tool["name"]: tool for tool in answer["result"]["tools"]}
        self.assertEqual(set(tools), {"findings", "ranks", "stacks", "sql", "explain"})
        self.assertTrue(all(tool["annotations"]["readOnlyHint"] for tool in tools.values()))
        self.assertEqual(tools["sql"]["inputSchema"]["required"], ["query"])
        self.assertEqual(tools["findings"]["inputSchema"]["properties"], {})

    def test_the_answers_are_those_of_the_commands(self):
        report = JOBS.line.call([JOBS.tool, "report", "--json", "hang"])[1].splitlines(True)
        for name, schema in (("findings", "finding"), ("ranks", "member"), ("stacks", "stack")):
            expected = "".join(line for line in report if json.loads(line)["schema"].startswith("ddpcheck.%s/" % schema))
            self.assertTrue(expected)
            self.assertEqual(self.call(name), (False, expected))
        self.assertEqual(self.call("explain", code="DC201"), (False, JOBS.line.call([JOBS.tool, "explain", "DC201"])[1]))
        self.assertEqual(self.call("sql", query="SELECT count(DISTINCT rank) AS n FROM v_collective"), (False, '{"n":4}\n'))

    def test_what_is_clean_and_what_is_missing(self):
        self.assertEqual(self.call("stacks", trace="clean"), (False, "none"))
        failed, text = self.call("findings", trace="nowhere")
        self.assertTrue(failed)
        self.assertIn("nowhere", text)

    def test_a_query_only_reads(self):
        for query in ("DELETE FROM event", "DROP TABLE event", "ATTACH 'x.db' AS x", "nonsense"):
            self.assertTrue(self.call("sql", query=query)[0], query)
        path, = JOBS.line.call(["sh", "-c", "ls hang/*.db"])[1].split()
        with sqlite3.connect("file:%s/%s?mode=ro" % (JOBS.folder, path), uri=True) as database:
            self.assertGreater(database.execute("SELECT count(*) FROM event").fetchone()[0], 0)

    def test_a_long_answer_is_cut(self):
        query = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 100000) SELECT i FROM n"
        failed, text = self.call("sql", query=query)
        self.assertFalse(failed)
        self.assertTrue(text.endswith("\n(cut: ask for less, for example with sql and LIMIT)\n"))
        self.assertLessEqual(len(text), 256 << 10)

    def test_wrong_requests(self):
        answers = self.talk("nonsense", "[]", "{}", {"id": 1, "method": "none"}, {"id": 2, "method": "tools/call", "params": {"name": "rm"}},
                            {"id": 3, "method": "tools/call", "params": {"name": "sql", "arguments": {"query": 1}}},
                            {"id": 4, "method": "tools/call"}, {"method": "none"}, {"id": None, "method": 1})
        self.assertEqual([(answer["id"], answer["error"]["code"]) for answer in answers],
                         [(None, -32700), (None, -32600), (None, -32600), (1, -32601), (2, -32602), (3, -32602), (4, -32602),
                          (None, -32600)])


if __name__ == "__main__":
    unittest.main()
