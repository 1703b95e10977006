"""Every command of docs/import.md does what it says, with samples in the places of what it names."""

import os
import re
import shutil
import subprocess

from importer import DATA, Importer, main

PAGE = os.path.join(DATA, "..", "..", "docs", "import.md")
DUMPS = "flight_recorder/nccl-size"
# What the page names: the sample that stands for it.
PLACES = {
    "DUMPS": DUMPS, ".cache/torch": DUMPS, "job.log": "nccl_log/timed.log", "bugreport.txt": "watchdog/missing.log",
    "nccl-inspector-1234": "inspector", "job.ras": "ras/behind.json", "rank0.json.gz": "kineto/nccl", "rank0.csv": "timeline/plain.csv",
    **{name: "stacks/" + name for name in ("node1.jsonl", "node2.jsonl", "rank_0.txt", "rank_1.txt")},
}


class Page(Importer):
    def prepare(self):
        for name, sample in PLACES.items():
            source, target = self.data(sample), os.path.join(self.folder, name)
            os.makedirs(os.path.dirname(target), exist_ok=True)
            if name.endswith(".gz"):        # one rank's trace
                source = os.path.join(source, sorted(os.listdir(source))[0])
                if os.path.isdir(source):
                    source = os.path.join(source, sorted(os.listdir(source))[0])
            (shutil.copytree if os.path.isdir(source) else shutil.copy)(source, target)

    def test_commands(self):
        self.prepare()
        with open(PAGE, encoding="utf-8") as page:
            commands = [line.strip() for line in re.findall(r"^    (ddpcheck .*)$", page.read(), re.M)]
        self.assertGreater(len(commands), 6)
        environment = {**os.environ, "HOME": self.folder, "PATH": os.path.join(main.build, "bin") + ":" + os.environ["PATH"]}
        for command in commands:
            with self.subTest(command):
                if "HOST:PORT" in command:      # tests/tui has a server
                    continue
                made = re.search(r" import .*-o (\S+)", command)
                if made and os.path.exists(os.path.join(self.folder, made[1])):
                    os.unlink(os.path.join(self.folder, made[1]))
                done = subprocess.run(command.replace("DUMPS...", "DUMPS"), shell=True, cwd=self.folder, env=environment,
                                      stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=300)
                self.assertIn(done.returncode, (0, 1) if " report " in command else (0,), done.stderr)
                is_log = re.search(r" report \S+\.log$", command.split("#")[0].strip())
                self.assertRegex(done.stderr, r"\A\S+ \S+ is no trace: imported for this command only .*\n\Z" if is_log else r"\A\Z")
                self.assertTrue(done.stdout)


if __name__ == "__main__":
    main()
