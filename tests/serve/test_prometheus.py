"""/metrics by a real Prometheus: it scrapes a hang, its alert fires, and each panel of the dashboard has data. Of Grafana itself,
which is not here, the dashboard's structure alone is checked. test_prometheus.py BUILD"""

import json
import os
import shutil
import subprocess
import sys
import unittest
import urllib.parse
import urllib.request

from hub import free_port
from jobs import Jobs
from server import Server

BUILD = sys.argv.pop(1)
HERE = os.path.dirname(os.path.abspath(__file__))
OPERATE = os.path.join(HERE, "..", "..", "docs", "operate")
PROMETHEUS, PROMTOOL = map(shutil.which, ("prometheus", "promtool"))
# What a job without iterations and without losses has nothing to show for.
EMPTY = ("Iteration, median", "Waiting for other ranks, per iteration")


def dashboard():
    with open(os.path.join(OPERATE, "dashboard.json"), encoding="utf-8") as file:
        return json.load(file)


class Dashboard(unittest.TestCase):
    def test_structure(self):
        board = dashboard()
        self.assertEqual(board["uid"], "ddpcheck")
        panels = board["panels"]
        self.assertEqual(sorted(panel["id"] for panel in panels), list(range(1, len(panels) + 1)))
        taken = set()
        for panel in panels:
            place = panel["gridPos"]
            cells = {(x, y) for x in range(place["x"], place["x"] + place["w"]) for y in range(place["y"], place["y"] + place["h"])}
            self.assertFalse(cells & taken, panel["title"])
            self.assertLessEqual(place["x"] + place["w"], 24)
            taken |= cells
            self.assertIn(panel["type"], ("stat", "table", "timeseries"))
            for target in panel["targets"]:
                self.assertEqual(target["datasource"], {"type": "prometheus", "uid": "${source}"})
                self.assertIn('instance=~"$instance"', target["expr"])
        self.assertEqual([each["name"] for each in board["templating"]["list"]], ["source", "instance"])


@unittest.skipUnless(PROMETHEUS and PROMTOOL, "needs prometheus")
class Prometheus(unittest.TestCase):
    def test_rules(self):
        """Each alert fires on its fault, after its time, and on nothing else."""
        for arguments in (["check", "rules", os.path.join(OPERATE, "alerts.yaml")],
                          ["test", "rules", os.path.join(HERE, "alerts.test.yaml")]):
            done = subprocess.run([PROMTOOL, *arguments], capture_output=True, text=True, timeout=120)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def ask(self, path, **parameters):
        address = "http://127.0.0.1:%d/api/v1/%s?%s" % (self.port, path, urllib.parse.urlencode(parameters))
        with urllib.request.urlopen(address, timeout=60) as answer:
            return json.load(answer)["data"]

    def start(self, folder, server, token):
        path = os.path.join(folder, "prometheus.yml")
        config = {"global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
                  "rule_files": [os.path.join(OPERATE, "alerts.yaml")],
                  "scrape_configs": [{"job_name": "ddpcheck", "authorization": {"credentials": token},
                                      "static_configs": [{"targets": ["127.0.0.1:%d" % server.port]}]}]}
        with open(path, "w", encoding="utf-8") as file:
            json.dump(config, file)         # JSON is YAML
        self.port = free_port()
        process = subprocess.Popen([PROMETHEUS, "--config.file", path, "--storage.tsdb.path", os.path.join(folder, "data"),
                                    "--web.listen-address", "127.0.0.1:%d" % self.port], stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL)
        self.addCleanup(process.wait, 60)
        self.addCleanup(process.terminate)
        while True:
            try:
                return self.ask("status/buildinfo")
            except OSError:
                self.assertIsNone(process.poll())

    def test_a_hang(self):
        jobs = Jobs(BUILD)
        self.addCleanup(jobs.close)
        lint = subprocess.run([PROMTOOL, "check", "metrics"], input=jobs.export("prometheus", "hang"), capture_output=True, text=True,
                              timeout=60)
        self.assertEqual((lint.returncode, lint.stdout), (0, ""), lint.stderr)
        token = os.path.join(jobs.folder, "token")
        with open(token, "w", encoding="ascii") as file:
            file.write("token-of-prometheus")
        os.chmod(token, 0o600)
        with Server(jobs.line, "--token-file", token, "hang") as server:
            self.start(jobs.folder, server, server.token)
            while not (alerts := [each for each in self.ask("alerts")["alerts"] if each["state"] == "firing"]):
                pass
            self.assertEqual({(each["labels"]["alertname"], each["labels"]["code"]) for each in alerts}, {("DdpcheckError", "DC201")})
            ranks = {each["metric"]["rank"] for each in self.ask("query", query="ddpcheck_seconds_since_progress")["result"]}
            self.assertEqual(ranks, {"0", "1", "2", "3"})
            self.assertEqual({each["metric"]["comm_name"] for each in self.ask("query", query="ddpcheck_collectives_total")["result"]},
                             {"control", "classifier"})
            for panel in dashboard()["panels"]:
                for target in panel["targets"]:
                    while True:      # a rate needs two scrapes
                        found = self.ask("query", query=target["expr"].replace("$instance", ".*"))["result"]
                        if found or panel["title"] in EMPTY:
                            break


if __name__ == "__main__":
    unittest.main()
