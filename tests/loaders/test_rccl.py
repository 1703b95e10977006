"""A program on RCCL (librccl.so.1): its NCCL calls are matched, and its hang is found; what HIP does is not checked.

test_rccl.py BUILD EMULATOR-LIBRARIES"""

import json
import os
import subprocess
import sys
import tempfile

BUILD, EMULATOR = (os.path.abspath(path) for path in sys.argv[1:3])
TOOL, FOLDER = os.path.join(BUILD, "bin", "ddpcheck"), os.path.join(BUILD, "tests", "loaders")
EXPECTED = {"clean": [], "count": ["DC102"], "message": ["DC107"], "skip": ["DC206"]}

for fault, expected in EXPECTED.items():
    with tempfile.TemporaryDirectory(prefix="ddpcheck-rccl-") as trace:
        environment = {name: value for name, value in os.environ.items() if not name.startswith("DDPCHECK") and name != "LD_PRELOAD"}
        environment.update(LD_LIBRARY_PATH=FOLDER + ":" + EMULATOR)
        run = subprocess.run([TOOL, "run", "-q", "--emulate", "3", "--hang-after", "3", "--on-finding", "abort", "-o", trace, "--",
                              os.path.join(FOLDER, "rccl_job"), fault], env=environment, capture_output=True, text=True, timeout=600)
        report = subprocess.run([TOOL, "report", "--json", trace], capture_output=True, text=True, timeout=300).stdout
        findings = [line for line in map(json.loads, report.splitlines()) if line["schema"].startswith("ddpcheck.finding/")]
        codes = [finding["code"] for finding in findings if finding["severity"] == "error"]
        unseen = [finding["what"] for finding in findings if finding["code"] == "DC903"]
        assert codes == expected, "%s: %s\n%s" % (fault, codes, run.stderr)
        assert fault != "clean" or not run.returncode, run
        assert any("calls of the CUDA runtime" in what for what in unseen), unseen
        print("%s: %s" % (fault, codes))
