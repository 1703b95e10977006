"""`ddpcheck serve` as a process, at a port that the kernel chose."""

import http.client
import subprocess
import urllib.parse


class Server:
    def __init__(self, line, *arguments, listen="127.0.0.1:0", environment=None):
        self.process = subprocess.Popen([line.tool, "serve", "--listen", listen, *arguments], cwd=line.folder, env=environment,
                                        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.url = self.process.stdout.readline().strip()
        if not self.url:
            raise AssertionError("serve ended: " + self.process.communicate(timeout=60)[1])
        parts = urllib.parse.urlsplit(self.url)
        self.host, self.port = parts.hostname, parts.port
        self.token = dict(urllib.parse.parse_qsl(parts.query)).get("token")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    def stop(self):
        """Ends it as a user does; what it printed to stderr."""
        if self.process.poll() is None:
            self.process.terminate()
        _, err = self.process.communicate(timeout=60)
        return err

    def get(self, path="/", headers=None, method="GET", body=None):
        """(status, headers, text) of one request on a connection of its own."""
        connection = http.client.HTTPConnection(self.host, self.port, timeout=60)
        try:
            connection.request(method, path, body, headers or {})
            answer = connection.getresponse()
            return answer.status, answer.headers, answer.read().decode()
        finally:
            connection.close()

    def wait(self, holds, path="/"):
        """Asks until holds(status, text): the first reading takes a moment, and a live job goes on. The test's limit ends it."""
        while True:
            status, _, text = self.get(path)
            if holds(status, text):
                return text
