"""What other tools make of it, by packages of pip. What OTEL_EXPORTER_OTLP_ENDPOINT sends arrives at a receiver that reads it by
OpenTelemetry's own definition, strictly; the OpenTelemetry Collector itself is in no package of Debian's or pip's. Grafana's SDK reads
the dashboard and loses nothing of it. The notebook of operate.md runs. test_tools.py BUILD"""

import http.server
import json
import os
import queue
import re
import shutil
import subprocess
import sys
import threading
import unittest

import packages

packages.need("google.protobuf", "opentelemetry.proto", "grafana_foundation_sdk", "pandas")

from google.protobuf import json_format
from grafana_foundation_sdk.cog import encoder, plugins
from grafana_foundation_sdk.models.dashboard import Dashboard
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest

from jobs import Jobs
from server import Server

BUILD = sys.argv.pop(1)
KINDS = {"/base/v1/metrics": ExportMetricsServiceRequest, "/base/v1/logs": ExportLogsServiceRequest}


def setUpModule():
    global JOBS
    JOBS = Jobs(BUILD)


def tearDownModule():
    JOBS.close()


class Receiver(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        request = json_format.Parse(self.rfile.read(int(self.headers["Content-Length"])), KINDS[self.path]())
        self.server.received.put((self.path, dict(self.headers), request))
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"{}")

    def log_message(self, *_):
        pass


def values(attributes):
    return {each.key: each.value.string_value for each in attributes}


class Otlp(unittest.TestCase):
    def setUp(self):
        self.receiver = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
        self.receiver.received = queue.Queue()
        threading.Thread(target=self.receiver.serve_forever, daemon=True).start()
        self.addCleanup(self.receiver.server_close)
        self.addCleanup(self.receiver.shutdown)
        self.environment = {**os.environ, "OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:%d/base/" % self.receiver.server_port,
                            "OTEL_EXPORTER_OTLP_HEADERS": "x-key=a%2Cb, other=2", "OTEL_RESOURCE_ATTRIBUTES": "team=vision,cluster=a b",
                            "OTEL_SERVICE_NAME": "night run"}

    def await_one(self, path):
        while True:
            got, headers, request = self.receiver.received.get(timeout=300)
            if got == path:
                return headers, request

    def await_log(self, code, state):
        """A busy machine can add a note of its own to the job's finding."""
        while True:
            headers, request = self.await_one("/base/v1/logs")
            attributes = values(request.resource_logs[0].scope_logs[0].log_records[0].attributes)
            if (attributes["ddpcheck.code"], attributes["ddpcheck.state"]) == (code, state):
                return headers, request

    def test_a_hang(self):
        shutil.copytree(os.path.join(JOBS.folder, "hang"), os.path.join(JOBS.folder, "served"))
        with Server(JOBS.line, "served", environment=self.environment) as server:
            headers, request = self.await_log("DC201", "open")
            self.assertEqual((headers["x-key"], headers["other"]), ("a,b", "2"))
            of_resource, = request.resource_logs
            self.assertEqual(values(of_resource.resource.attributes), {"service.name": "night run", "team": "vision", "cluster": "a b"})
            of_scope, = of_resource.scope_logs
            record, = of_scope.log_records
            finding, = [each for each in JOBS.findings("hang") if each["code"] == "DC201"]
            self.assertEqual((record.severity_number, record.severity_text, record.body.string_value), (17, "error", finding["what"]))
            self.assertEqual(values(record.attributes)["ddpcheck.fingerprint"], finding["fingerprint"])
            self.check_metrics(self.await_metrics(lambda names: True), server)
            shutil.rmtree(os.path.join(JOBS.folder, "served"))
            shutil.copytree(os.path.join(JOBS.folder, "clean"), os.path.join(JOBS.folder, "served"))
            self.await_log("DC201", "resolved")

    def await_metrics(self, holds):
        while True:
            _, request = self.await_one("/base/v1/metrics")
            of_scope, = request.resource_metrics[0].scope_metrics
            names = {metric.name: metric for metric in of_scope.metrics}
            if holds(names):
                return names

    def check_metrics(self, names, server):
        """Each line of /metrics is a point."""
        lines = [line for line in server.wait(lambda status, text: status == 200, "/metrics").splitlines() if not line.startswith("#")]
        points = []
        for name, metric in names.items():
            kind = metric.WhichOneof("data")
            self.assertEqual(kind, "sum" if name.endswith("_total") else "gauge")
            self.assertTrue(metric.description)
            points += [(name, frozenset(values(point.attributes).items()), point.as_double) for point in getattr(metric, kind).data_points]
        self.assertEqual(len(points), len(lines))
        self.assertIn(("ddpcheck_findings", frozenset({"code": "DC201", "severity": "error"}.items()), 1.0), points)
        self.assertIn(("ddpcheck_processes", frozenset(), 4.0), points)

    def test_the_end_of_a_run(self):
        """A run tells of its end, however short it is, and its program's output is its own."""
        trace, metrics = os.path.join(JOBS.folder, "told"), os.path.join(JOBS.folder, "told.prom")
        status, out, err = JOBS.line.call([JOBS.tool, "run", "--emulate", "2", "--metrics", metrics, "-o", trace, "--", JOBS.line.trainer,
                                           "--model", "cnn", "--dataset-size", "64", "--ranks", "2", "--iterations", "5"],
                                          environment={**self.environment, "OTEL_METRIC_EXPORT_INTERVAL": "3600000"})
        self.assertEqual(status, 0, err)
        self.assertNotIn("http://", out + err)
        self.await_metrics(lambda names: "ddpcheck_trace_complete" in names
                           and names["ddpcheck_trace_complete"].gauge.data_points[0].as_double == 1)
        with open(metrics, encoding="utf-8") as file:
            self.assertIn("ddpcheck_trace_complete 1\n", file.read())

    def test_a_job_is_not_disturbed(self):
        """Nobody takes what is sent; there is no such place; the file can't be written."""
        for place, words in (("127.0.0.1:0", "can't send metrics as OTEL_EXPORTER_OTLP_ENDPOINT asks"), ("nowhere", "can't listen on 'nowhere'"),
                             ("none/file.prom", "can't write none/file.prom")):
            status, out, err = JOBS.line.call([JOBS.tool, "run", "--emulate", "2", "--metrics", place, "-o", "undisturbed", "--",
                                               JOBS.line.trainer, "--model", "cnn", "--dataset-size", "64", "--ranks", "2", "--iterations", "5"],
                                              environment={"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1"})
            self.assertEqual(status, 0, err)
            self.assertIn("accuracy", out)
            self.assertIn(words, err)

    def test_what_is_no_address(self):
        self.environment["OTEL_EXPORTER_OTLP_ENDPOINT"] = "localhost:4318"
        with self.assertRaisesRegex(AssertionError, "OTEL_EXPORTER_OTLP_ENDPOINT is no address of HTTP"):
            Server(JOBS.line, "hang", environment=self.environment)


def read_docs(*names):
    with open(os.path.join(packages.ROOT, "docs", *names), encoding="utf-8") as file:
        return file.read()


class Readers(unittest.TestCase):
    def check_kept(self, written, read, path):
        """All that was written was read. Defaults that the reader adds do not matter."""
        if isinstance(written, dict):
            self.assertLessEqual(set(written), set(read), path)
            for name, value in written.items():
                self.check_kept(value, read[name], path + "/" + name)
        elif isinstance(written, list):
            self.assertEqual(len(written), len(read), path)
            for i, value in enumerate(written):
                self.check_kept(value, read[i], "%s/%d" % (path, i))
        else:
            self.assertEqual(written, read, path)

    def test_dashboard(self):
        plugins.register_default_plugins()
        board = json.loads(read_docs("operate", "dashboard.json"))
        self.check_kept(board, json.loads(encoder.JSONEncoder().encode(Dashboard.from_json(board))), "")

    def test_notebook(self):
        code, = re.findall(r"```python\n(.*?)```", read_docs("operate.md"), re.S)
        folder = os.path.join(JOBS.folder, "notebook")
        os.makedirs(folder)
        os.symlink(os.path.join(JOBS.folder, "hang"), os.path.join(folder, "ddpcheck-trace"))
        done = subprocess.run([sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, timeout=300)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout, r"comm classifier +\d")
        self.assertIn("ncclAllReduce", done.stdout)
        self.assertIn("running", done.stdout)


if __name__ == "__main__":
    unittest.main()
