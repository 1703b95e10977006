"""The rows of docs/gpu-results.md: kept between calls, and written anew after each check."""

import datetime
import json
import os
import threading

TEXT_MAX = 400


class Rows:
    def __init__(self, work, path, machine, fingerprint, emulated):
        """Rows of other programs or of another machine are dropped."""
        self.kept, self.path, self.machine, self.emulated = os.path.join(work, "rows.json"), path, machine, emulated
        self.rows, self.lock = {}, threading.Lock()
        self.origin = {"programs": fingerprint, "machine": machine}
        try:
            with open(self.kept) as file:
                before = json.load(file)
        except (OSError, ValueError):
            before = {}
        if before.get("origin") == self.origin:
            self.rows = before["rows"]

    def passed(self, name):
        return self.rows.get(name, {}).get("result") == "passed"

    def failed(self):
        return any(row["result"] == "FAILED" for row in self.rows.values())

    def add(self, name, result, seconds, text):
        """Keeps and writes the row; returns it as a line."""
        text = " ".join(text.split())
        with self.lock:         # checks run beside each other
            self.rows[name] = {"result": result, "seconds": round(seconds), "date": datetime.date.today().isoformat(),
                               "text": text if len(text) <= TEXT_MAX else text[:TEXT_MAX - 3] + "..."}
            write_whole(self.kept, json.dumps({"origin": self.origin, "rows": self.rows}))
            write_whole(self.path, self.page())
        return self.line(name)

    def line(self, name):
        row = self.rows[name]
        return "| %s | %s | %d s | %s |" % (name, row["result"], row["seconds"], row["text"].replace("|", "/"))

    def links(self):
        """What `make docs` has put at the page's end."""
        try:
            with open(self.path) as file:
                return "".join(file.read().partition("\n---\n")[1:])
        except OSError:
            return ""

    def page(self):
        title = ["# A dry run on the emulated GPU", "", "Nothing here is a figure of a GPU: the checks ran in small, on a CPU."]
        if not self.emulated:
            title = ["# Figures from a GPU", "",
                     "Written by tests/gpu/run; every row comes from the machine that this header names. "
                     "[interop.md](interop.md#on-a-real-gpu) says", "why rows failed."]
        dates = sorted({row["date"] for row in self.rows.values()})
        return "\n".join(title + ["", "- %s, programs %s" % (" and ".join(dates), self.origin["programs"]),
                                  "- " + self.machine, "", "| check | result | time | what it found |",
                                  "| --- | --- | --- | --- |"] + [self.line(name) for name in self.rows]) + "\n" + self.links()


def write_whole(path, text):
    """Readers see the old file or the new one, whenever the call is ended."""
    with open(path + ".new", "w") as file:
        file.write(text)
    os.replace(path + ".new", path)
