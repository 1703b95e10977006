"""Chromium without a window, driven over its debugging pipe: opens an address, evaluates JavaScript, takes screenshots."""

import base64
import fcntl
import json
import os
import shutil
import subprocess

CHROMIUM = next((path for path in map(shutil.which, ("chromium", "chromium-browser", "google-chrome")) if path), None)


class Browser:
    def __init__(self, folder, width=1280, height=2000, dark=False, arguments=()):
        commands, self.to = os.pipe()
        self.answers, answers = os.pipe()

        def move():         # Chromium reads commands from descriptor 3 and writes answers to 4
            high = [fcntl.fcntl(each, fcntl.F_DUPFD, 10) for each in (commands, answers)]
            os.dup2(high[0], 3)
            os.dup2(high[1], 4)

        self.process = subprocess.Popen(
            [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--remote-debugging-pipe",
             "--user-data-dir=" + os.path.join(folder, "profile"), *arguments], preexec_fn=move, close_fds=False,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(commands)
        os.close(answers)
        self.number, self.pending, self.console = 0, b"", []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = None
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.call(domain + ".enable")
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        self.call("Emulation.setEmulatedMedia",
                  features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])

    def __enter__(self):
        return self

    def __exit__(self, *_):
        os.close(self.to)
        self.process.kill()
        self.process.wait()
        os.close(self.answers)

    def receive(self):
        while b"\0" not in self.pending:
            data = os.read(self.answers, 1 << 20)
            assert data, "the browser has ended"
            self.pending += data
        message, self.pending = self.pending.split(b"\0", 1)
        message = json.loads(message)
        if message.get("method") in ("Runtime.exceptionThrown", "Log.entryAdded", "Runtime.consoleAPICalled"):
            self.console.append(json.dumps(message["params"]))
        return message

    def call(self, method, **parameters):
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        if getattr(self, "session", None):
            message["sessionId"] = self.session
        os.write(self.to, json.dumps(message).encode() + b"\0")
        while True:
            answer = self.receive()
            if answer.get("id") == self.number:
                assert "error" not in answer, answer
                return answer["result"]

    def open(self, address):
        self.call("Page.navigate", url=address)
        self.wait("document.readyState === 'complete'")

    def evaluate(self, expression):
        """The value of an expression, as if a user had asked for it; of a promise, what it gives."""
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True, userGesture=True)
        assert "exceptionDetails" not in result, result
        return result["result"].get("value")

    def wait(self, expression):
        """Until the expression holds, which the page looks at whenever it draws; the test's own time limit ends it."""
        while not self.evaluate("new Promise(done => { const look = () => (%s) ? done(true) : setTimeout(look, 50); look(); })"
                                % expression):
            pass

    def screenshot(self, path, whole=True):
        shot = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        with open(path, "wb") as file:
            file.write(base64.b64decode(shot["data"]))
