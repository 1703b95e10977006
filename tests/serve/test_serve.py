"""ddpcheck serve: the same words as the report, up to date while a job runs, in Chromium too; and who may read."""

import http.client
import json
import os
import shutil
import signal
import sqlite3
import ssl
import subprocess
import sys
import unittest
import urllib.request

from browser import CHROMIUM, Browser
from jobs import HANG, Jobs
from server import Server

BUILD = sys.argv.pop(1)
SOURCE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")


def setUpModule():
    global JOBS
    JOBS = Jobs(BUILD)


def tearDownModule():
    JOBS.close()


def is_read(status, _):
    return status == 200


class Documents(unittest.TestCase):
    def test_the_same_as_report_and_export(self):
        """The page is the exported one but for its scripts; the other documents are the same, byte by byte."""
        with Server(JOBS.line, "hang") as server:
            page = server.wait(is_read)
            exported = JOBS.export("html", "hang")
            policy = exported[exported.index("<meta http-equiv"):exported.index("<title>")]
            script = exported[exported.index("<script>\n"):exported.index("</script>\n</body>")]
            self.assertEqual(page.replace("<script src=page.js></script>\n<script src=live.js>", script),
                             exported.replace(policy, ""))
            status, headers, report = server.get("/report.jsonl")
            self.assertEqual((status, headers["Content-Type"]), (200, "application/x-ndjson; charset=utf-8"))
            self.assertEqual(report, JOBS.line.call([JOBS.tool, "report", "--json", "hang"])[1])
            self.assertEqual(server.get("/metrics")[2], JOBS.export("prometheus", "hang"))
            self.assertEqual(server.get("/page.js")[2], script[len("<script>\n"):])
            self.assertEqual(server.get("/healthz")[::2], (200, "ok\n"))
            self.assertEqual(server.stop(), "")
            self.assertEqual(server.process.returncode, 0)

    def test_an_import(self):
        """What import has judged is shown as it is stored."""
        dumps, path = (os.path.join(JOBS.folder, name) for name in ("dumps", "imported.db"))
        subprocess.run([sys.executable, os.path.join(SOURCE, "bench/flight_recorder.py"), dumps, "16", "12"], check=True,
                       stdout=subprocess.DEVNULL, timeout=300)
        subprocess.run([JOBS.tool, "import", "-q", "-o", path, dumps], check=True, timeout=300)
        with Server(JOBS.line, path) as server:
            self.assertIn("rank 13 never called it", server.wait(is_read))
            self.assertEqual(server.get("/report.jsonl")[2], JOBS.line.call([JOBS.tool, "report", "--json", path])[1])

    def test_headers(self):
        with Server(JOBS.line, "hang") as server:
            server.wait(is_read)
            for path in ("/", "/metrics", "/report.jsonl", "/page.js", "/healthz", "/none"):
                headers = server.get(path)[1]
                self.assertIn("default-src 'none'; script-src 'self'", headers["Content-Security-Policy"])
                self.assertEqual(headers["X-Content-Type-Options"], "nosniff")
                self.assertEqual(headers["Cache-Control"], "no-store")
                self.assertNotIn("Access-Control-Allow-Origin", headers)
            tag = server.get()[1]["ETag"]
            self.assertEqual(server.get(headers={"If-None-Match": tag})[::2], (304, ""))
            self.assertEqual(server.get(headers={"If-None-Match": '"other"'})[0], 200)
            self.assertEqual(server.get(method="HEAD")[::2], (200, ""))

    def test_what_can_not_be_read(self):
        """No trace yet, then one: each document says why, and comes by itself."""
        path = os.path.join(JOBS.folder, "later")
        with Server(JOBS.line, "later") as server:
            page = server.wait(lambda status, text: status == 503 and "later" in text)
            self.assertRegex(page, "<p class=verdict>can't open later|<p class=verdict>[^<]*later")
            self.assertEqual(server.get("/metrics")[0], 503)
            shutil.copytree(os.path.join(JOBS.folder, "hang"), path)
            self.assertIn("DC201", server.wait(is_read))
            shutil.rmtree(path)
            server.wait(lambda status, text: status == 503)
            self.assertEqual(server.stop().count("ddpcheck: serve: "), 2, "each reason once")

    def test_choice(self):
        with Server(JOBS.line, "--disable", "DC201", "hang") as server:
            self.assertNotIn("<article", server.wait(is_read))

    def test_usage(self):
        for arguments, words in ((["--listen", "nowhere"], "ADDRESS:PORT"), (["--listen", "1::2:3"], "ADDRESS:PORT"),
                                 (["--listen", "127.0.0.1:65536"], "ADDRESS:PORT"), (["--tls-cert", "x"], "--tls-key"),
                                 (["--token-file", "none"], "no such file"),
                                 (["--listen", "127.0.0.1:0", "--tls-cert", "none", "--tls-key", "none"], "can't read none")):
            status, _, err = JOBS.line.call([JOBS.tool, "serve", *arguments, "hang"])
            self.assertEqual(status, 2, err)
            self.assertIn(words, err)
        with Server(JOBS.line, "hang") as server:
            status, _, err = JOBS.line.call([JOBS.tool, "serve", "--listen", "127.0.0.1:%d" % server.port, "hang"])
            self.assertEqual(status, 2)
            self.assertIn("Address already in use; --listen ADDRESS:0 takes a port that is free", err)


class Access(unittest.TestCase):
    def test_a_name_is_refused_without_a_token(self):
        """A page of another site that resolves its own name to 127.0.0.1 reads nothing (DNS rebinding)."""
        with Server(JOBS.line, "hang") as server:
            server.wait(is_read)
            for host in ("evil.example", "evil.example:80", "127.0.0.1.evil.example", "localhost.evil.example", "", "[evil]"):
                self.assertEqual(server.get(headers={"Host": host})[0], 403, host)
            for host in ("localhost", "LOCALHOST:1", "127.0.0.1:9", "[::1]:9"):
                self.assertEqual(server.get(headers={"Host": host})[0], 200, host)

    def test_others_need_the_token(self):
        """An address that others can reach has a random token, which the page's address carries; a cookie takes its place."""
        with Server(JOBS.line, "hang", listen="0.0.0.0:0") as server:
            self.assertEqual(len(server.token), 32)
            server.host = "127.0.0.1"
            for path in ("/", "/metrics", "/report.jsonl", "/none", "/?token=", "/?token=" + server.token[:-1],
                         "/?token=" + server.token + "0", "/metrics?token=" + server.token):
                status, headers, text = server.get(path)
                self.assertEqual((status, headers["WWW-Authenticate"]), (401, "Bearer"), path)
                self.assertNotIn("DC201", text)
            status, headers, _ = server.get("/?token=" + server.token)
            self.assertEqual((status, headers["Location"]), (303, "."))
            cookie, rest = headers["Set-Cookie"].split("; ", 1)
            self.assertEqual(rest, "HttpOnly; SameSite=Lax")
            good = [{"Cookie": cookie}, {"Cookie": "a=b; %s; c=d" % cookie}, {"Authorization": "Bearer " + server.token}]
            bad = [{"Cookie": cookie + "0"}, {"Cookie": "x" + cookie}, {"Cookie": cookie.split("=")[0] + "="}, {"Cookie": ";;;"},
                   {"Authorization": server.token}, {"Authorization": "Bearer"}, {"Authorization": "Basic " + server.token}]
            self.assertEqual([server.get(headers=each)[0] for each in bad], [401] * len(bad))
            for each in good:
                self.assertIn(server.get("/metrics", headers=each)[0], (200, 503))
            self.assertEqual(server.get("/healthz")[0], 200)

    def test_token_file(self):
        path = os.path.join(JOBS.folder, "token")
        with open(path, "w") as file:
            file.write("a-token-of-mine\n")
        os.chmod(path, 0o644)
        status, _, err = JOBS.line.call([JOBS.tool, "serve", "--token-file", path, "hang"])
        self.assertEqual(status, 2)
        self.assertIn("others can read", err)
        os.chmod(path, 0o600)
        with Server(JOBS.line, "--token-file", path, "hang") as server:
            self.assertTrue(server.url.endswith("/?token=a-token-of-mine"))
            self.assertEqual(server.get()[0], 401)

    @unittest.skipUnless(shutil.which("openssl"), "needs openssl")
    def test_tls(self):
        key, certificate = (os.path.join(JOBS.folder, name) for name in ("key.pem", "cert.pem"))
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
                        "-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", certificate],
                       check=True, capture_output=True)
        with Server(JOBS.line, "--tls-cert", certificate, "--tls-key", key, "hang") as server:
            self.assertTrue(server.url.startswith("https://127.0.0.1:"))
            context = ssl.create_default_context(cafile=certificate)
            with urllib.request.urlopen(server.url + "healthz", context=context, timeout=60) as answer:
                self.assertEqual(answer.read(), b"ok\n")
            with self.assertRaises((OSError, http.client.HTTPException), msg="without TLS nothing is answered"):
                server.get("/healthz")
        status, _, err = JOBS.line.call([JOBS.tool, "serve", "--listen", "127.0.0.1:0", "--tls-cert", key, "--tls-key", certificate, "hang"])
        self.assertEqual(status, 2)
        self.assertIn("can't serve https://127.0.0.1:", err)


@unittest.skipUnless(CHROMIUM, "needs Chromium")
class Pages(unittest.TestCase):
    def browse(self, width=1280, dark=False):
        return Browser(os.path.join(JOBS.folder, self.id()), width=width, height=900, dark=dark)

    def test_a_job_that_hangs_while_somebody_looks(self):
        """Opened before the job began; the finding comes, what is open stays open, and the page is never loaded again."""
        line = JOBS.line.beside("live")
        with Server(line, "trace") as server, self.browse() as browser:
            server.wait(lambda status, text: status == 503 and "trace" in text)
            browser.open(server.url)
            browser.evaluate("window.kept = 1")
            browser.wait("/trace/.test(document.body.innerText)")
            job = subprocess.Popen([line.tool, "run", "--emulate", "4", "-o", "trace", "--", line.trainer, *HANG], cwd=line.folder,
                                   stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            browser.wait("document.title.startsWith('DC201: ranks 0-2 wait in ncclAllReduce')")
            browser.wait("document.getElementById('live').textContent === 'live'")
            browser.evaluate("document.querySelector('.about').open = true; document.querySelector('#findings .frames').open = true")
            job.send_signal(signal.SIGTERM)
            job.wait(timeout=120)
            browser.wait("document.getElementById('live').textContent === 'up to date; nothing is being recorded'")
            self.assertEqual(browser.evaluate("window.kept"), 1)
            self.assertTrue(browser.evaluate("document.querySelector('.about').open"))
            self.assertTrue(browser.evaluate("document.querySelector('#findings .frames').open"))
            self.assertEqual(browser.evaluate("document.querySelectorAll('canvas').length"), 1)
            self.assertEqual(browser.console, [each for each in browser.console if "503" in each], "the page complains")
            server.stop()
            browser.wait("/^no answer from ddpcheck for/.test(document.getElementById('live').textContent)")

    def test_the_map_and_the_message(self):
        """A square for each rank, which says whose it is; the address of a finding; what is copied for a chat."""
        with Server(JOBS.line, "hang") as server, self.browse() as browser:
            server.wait(is_read)
            finding, = [each for each in JOBS.findings("hang") if each["code"] == "DC201"]
            browser.open(server.url + "#f-" + finding["fingerprint"])
            browser.wait("document.getElementById('live')")
            self.assertTrue(browser.evaluate("document.querySelector(':target').matches('article.error')"))
            self.assertEqual(browser.evaluate("document.querySelector(':target .permalink').href"), browser.evaluate("location.href"))
            self.assertEqual(browser.evaluate("Array.from(document.querySelectorAll('#map .key li'), each => each.textContent.trim())"),
                             ["cause: 1", "waiting: 3"])
            browser.evaluate("document.querySelector('#map .hosts .cause').click()")
            self.assertRegex(browser.evaluate("document.querySelector('#map .says').textContent"),
                             r"^rank 3, .*, GPU 3, pid \d+: cause; in cudaStreamSynchronize")
            browser.evaluate("document.addEventListener('copy', () => window.copied = document.activeElement.value)")
            browser.evaluate("document.querySelector('.copy').click()")
            lines = browser.evaluate("window.copied").splitlines()
            self.assertTrue(lines[0].startswith("DC201: ranks 0-2 wait in ncclAllReduce"), lines)
            self.assertTrue(any(line.startswith("Fix ") for line in lines), lines)
            self.assertEqual(lines[-1], browser.evaluate("location.href"))

    def test_layout(self):
        for name in ("hang", "clean"):
            with Server(JOBS.line, name) as server:
                server.wait(is_read)
                for width, dark in ((1280, False), (390, True)):
                    with self.browse(width, dark) as browser:
                        browser.open(server.url)
                        browser.wait("document.getElementById('live')")
                        self.assertLessEqual(browser.evaluate("document.documentElement.scrollWidth"), width)
                        self.assertEqual(browser.console, [])

    def test_the_token_leaves_the_address(self):
        with Server(JOBS.line, "hang", listen="0.0.0.0:0") as server, self.browse() as browser:
            server.host = "127.0.0.1"
            browser.open("http://127.0.0.1:%d/?token=%s" % (server.port, server.token))
            browser.wait("document.title.startsWith('DC201')")
            self.assertEqual(browser.evaluate("location.search + document.cookie"), "")

    def test_names_of_a_stranger_are_text(self):
        """A trace whose every name is markup shows it, and runs nothing of it."""
        folder = os.path.join(JOBS.folder, "strange")
        shutil.copytree(os.path.join(JOBS.folder, "hang"), folder)
        markup = "<img src=x onerror=\"document.title='run'\"><script>document.title='run'</script></title></style>"
        path, = [os.path.join(folder, name) for name in os.listdir(folder) if name.endswith(".db")]
        with sqlite3.connect(path) as database:
            columns = [row[1] for row in database.execute("PRAGMA table_info(process)") if row[2].upper() == "TEXT"]
            self.assertIn("host", columns)
            for column in set(columns) - {"boot_id", "launcher"}:
                database.execute("UPDATE process SET %s = ?" % column, [markup])
            database.execute("UPDATE string SET text = text || ?", [markup])
        with Server(JOBS.line, "strange") as server, self.browse() as browser:
            self.assertNotIn("<img", server.wait(is_read))
            for line in server.get("/report.jsonl")[2].splitlines():
                json.loads(line)
            browser.open(server.url)
            browser.wait("document.getElementById('live')")
            self.assertEqual(browser.evaluate("document.querySelectorAll('img').length"), 0)
            self.assertEqual(browser.evaluate("document.querySelectorAll('script:not([src]):not([type])').length"), 0)
            self.assertTrue(browser.evaluate("document.title.startsWith('DC')"))
            self.assertTrue(browser.evaluate("document.body.innerText.includes('<img src=x')"))
            self.assertEqual(browser.console, [])


if __name__ == "__main__":
    unittest.main()
