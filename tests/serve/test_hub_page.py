"""ddpcheck hub --http: a job of four hosts as a page, for those who have the readers' token. test_hub_page.py BUILD"""

import http.client
import os
import re
import signal
import subprocess

from hosts import BUILD, DDPCHECK, Job, main
from hub import PATIENCE_S, Hub, children, read_file, runs


class HubPage(Job):
    def start_page(self, *options):
        hub = Hub(BUILD, os.path.join(self.folder, "hub"), "--hang-after", self.hang_after, "--http", "127.0.0.1:0", *options)
        self.addCleanup(hub.__exit__)
        self.url = hub.process.stdout.readline().strip()
        self.port, self.token = re.match(r"http://127\.0\.0\.1:(\d+)/\?token=(\S+)$", self.url).groups()
        return hub

    def get(self, path, token=True):
        connection = http.client.HTTPConnection("127.0.0.1", int(self.port), timeout=PATIENCE_S)
        connection.request("GET", path, headers={"Authorization": "Bearer " + self.token} if token else {})
        answer = connection.getresponse()
        text = answer.read().decode()
        connection.close()
        return answer.status, text

    def test_a_job_of_four_hosts(self):
        hub = self.start_page()
        self.assertEqual(self.token, read_file(os.path.join(hub.folder, "reader-token")).strip())
        self.assertEqual(self.get("/", token=False)[0], 401)
        self.start_recording(hub)
        line = self.await_news("DC201")
        while "DC201" not in (page := self.get("/")[1]):
            pass
        self.assertIn("<title>DC201: " + line[3].split(";")[0], page)
        self.assertIn("rank 3 never called it", page)
        self.assertIn("4 processes on n[0-3]", page)
        self.assertIn(" data-recording", page)
        self.assertIn('ddpcheck_findings{code="DC201",severity="error"} 1\n', self.get("/metrics")[1])
        for host in range(4):
            self.assertIn('node="n%d"' % host, self.get("/metrics")[1])
        self.end_hosts()
        self.assertEqual(hub.end()[0], 0)

    def test_it_ends_with_the_hub(self):
        hub = self.start_page()
        page, = [child for child in children(hub.process.pid) if "\0serve\0" in read_file("/proc/%d/cmdline" % child)]
        self.assertNotIn(self.token, read_file("/proc/%d/cmdline" % page), "other users see arguments")
        self.assertEqual(hub.end()[0], 0)
        self.assertFalse(os.path.exists("/proc/%d" % page))
        hub = self.start_page()
        page, = [child for child in children(hub.process.pid) if "\0serve\0" in read_file("/proc/%d/cmdline" % child)]
        hub.end(signal.SIGKILL)
        while os.path.exists("/proc/%d" % page) and runs(page):
            pass

    def test_usage(self):
        done = subprocess.run([DDPCHECK, "hub", "--http", "nowhere", "--dir", os.path.join(self.folder, "hub"), "--port", "1",
                               "--any-port"], capture_output=True, text=True, timeout=PATIENCE_S)
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertIn("can't listen on 'nowhere'", done.stderr)


if __name__ == "__main__":
    main()
