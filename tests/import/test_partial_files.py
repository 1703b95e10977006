"""An import and an export that a signal ends leave no file behind."""

import glob
import os
import signal
import subprocess
import time

import flight_dump as flight
from importer import Importer, main

ROWS = 60000            # so many that writing them takes a while
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class PartialFiles(Importer):
    def end_while_written(self, number, partial, *arguments):
        """Sends the signal as soon as the partial file is there."""
        process = subprocess.Popen([os.path.join(main.build, "bin", "ddpcheck"), *arguments], cwd=self.folder, stdin=subprocess.DEVNULL,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while process.poll() is None and not glob.glob(os.path.join(self.folder, partial)):
            time.sleep(0.001)
        process.send_signal(number)
        self.assertEqual(process.wait(60), -number)
        self.assertEqual(glob.glob(os.path.join(self.folder, "output*")), [])

    def test_partial_files(self):
        self.write("nccl_trace_rank_0", flight.pickle(flight.dump([flight.entry(i, "all_reduce") for i in range(ROWS)])))
        for number in SIGNALS:
            self.end_while_written(number, "output.db.partial*", "import", "-o", "output.db", "nccl_trace_rank_0")
        self.assertEqual(self.ddpcheck("import", "-o", "whole.db", "nccl_trace_rank_0").returncode, 0)
        for number in SIGNALS:
            self.end_while_written(number, "output.json.tmp*", "export", "-f", "chrome", "-o", "output.json", "whole.db")


main()
