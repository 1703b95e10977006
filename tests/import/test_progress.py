"""What an import prints on a terminal while it works: how much of how much; elsewhere nothing.

The line comes from the second second on, whatever the machine: the import is stopped for longer than that soon after its start.
"""

import os
import pty
import re
import signal
import subprocess
import time

from importer import Importer, main

STEPS = 60000
BEGUN_S = 0.1       # an import of STEPS steps has begun and is not done
STOPPED_S = 2.5     # the line is due behind QUIET_S of cmd/import_run.c


class Progress(Importer):
    def long_log(self):
        with open(self.data("nccl_log/clean.log"), encoding="utf-8") as file:
            lines = file.read().splitlines()
        begin = [line for line in lines if " comm 0x" in line and "Init" in line or "version" in line]
        calls = [line for line in lines if "opCount 0 " in line]
        text = "\n".join(begin) + "\n"
        for step in range(STEPS):
            text += "\n".join(call.replace("opCount 0 ", "opCount %x " % step) for call in calls) + "\n"
        return self.write("long.log", text)

    def on_terminal(self, *arguments):
        """(status, what the terminal was sent) of the tool with a terminal as stderr."""
        here, there = pty.openpty()
        process = subprocess.Popen([os.path.join(main.build, "bin", "ddpcheck"), *arguments], stdout=subprocess.DEVNULL, stderr=there)
        os.close(there)
        time.sleep(BEGUN_S)
        process.send_signal(signal.SIGSTOP)
        time.sleep(STOPPED_S)
        process.send_signal(signal.SIGCONT)
        sent = b""
        while True:
            try:
                piece = os.read(here, 4096)
            except OSError:                 # the other end is closed
                break
            sent += piece
            if not piece:
                break
        os.close(here)
        return process.wait(300), sent.decode()

    def test_how_much_of_how_much(self):
        log = self.long_log()
        megabytes = "%.1f" % (os.path.getsize(log) / 1e6)
        status, sent = self.on_terminal("import", "-o", log + ".db", log)
        self.assertEqual(status, 0, sent)
        read = [(int(part), whole) for part, whole in re.findall(r"importing: (\d+) % of ([\d.]+) MB", sent)]
        stored = [int(part) for part in re.findall(r"storing: (\d+) % of \d+ records", sent)]
        self.assertEqual({whole for _, whole in read}, {megabytes} if read else set(), sent)
        self.assertTrue(read + stored, "nothing after %s seconds:\n" % STOPPED_S + sent)
        for parts in [part for part, _ in read], stored:
            self.assertEqual(parts, sorted(parts))
            self.assertTrue(all(0 <= part <= 100 for part in parts), parts)
        self.assertTrue(sent.endswith("\r\033[K"), "the line stays: %r" % sent[-80:])

    def test_no_terminal(self):
        log = self.long_log()
        done = subprocess.run([os.path.join(main.build, "bin", "ddpcheck"), "import", "-o", log + ".db", log], capture_output=True,
                              text=True, timeout=300)
        self.assertEqual((done.returncode, done.stderr), (0, ""))


if __name__ == "__main__":
    main()
