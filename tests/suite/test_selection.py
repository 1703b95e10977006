"""What the shim leaves out by default (docs/decisions.md, "Which work the shim records") loses no finding: every program of the
categories that depend on kernels and copies gives the same findings with --cuda=used and --cuda=all. Programs whose
fault is a matter of chance (payload hashes) are left out.

test_selection.py BUILD"""

import json
import os
import subprocess
import sys
import tempfile

RUNNER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "run.py")
CATEGORIES = ("hazard", "device")
BY_CHANCE = {"DC308", "DC309"}


def findings(build, how, cases):
    """{program: codes and certainties} of a run with DDPCHECK_CUDA=how."""
    with tempfile.NamedTemporaryFile("r", suffix=".json") as file:
        subprocess.run([sys.executable, RUNNER, "--build", build, "--jobs", "2", "--verdicts", file.name, *cases],
                       env={**os.environ, "DDPCHECK_CUDA": how}, stdout=subprocess.DEVNULL, check=False, timeout=500)
        verdicts = json.load(file)
    return {verdict["program"]: sorted({(one["code"], one["certainty"]) for one in verdict["findings"]
                                        if one["severity"] != "note" and one["state"] != "resolved"})
            for verdict in verdicts}


def cases(build):
    listed = json.loads(subprocess.run([sys.executable, RUNNER, "--build", build, "--list"], capture_output=True, text=True,
                                       check=True, timeout=300).stdout)
    chance = {entry["case"] for entry in listed if entry["expect"] and BY_CHANCE & set(entry["expect"]["codes"])}
    return sorted({entry["case"] for entry in listed if entry["category"] in CATEGORIES} - chance)


def main():
    build = sys.argv[1]
    chosen = cases(build)
    assert len(chosen) >= 20, chosen
    everything, used = (findings(build, how, chosen) for how in ("all", "used"))
    different = {program: (everything[program], used.get(program)) for program in everything
                 if everything[program] != used.get(program)}
    assert not different, "all, used: %s" % different
    found = sum(1 for one in everything.values() if one)
    assert found >= 15, "programs with a finding: %d" % found
    print("%d programs, %d of them with findings: the same" % (len(everything), found))


if __name__ == "__main__":
    main()
