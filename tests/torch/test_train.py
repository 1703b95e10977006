"""Correct PyTorch programs on emulated GPUs, started as a user starts them: they run to their end, and nothing is reported.

test_train.py BUILD [PROGRAM...]. The ways of PyTorch to use several GPUs, and programs like its examples, on 2 and on 4 ranks."""

import os
import subprocess
import sys

from jobs import HERE, Line, torch_folder

QUIET = {"OMP_NUM_THREADS": "1", "TORCH_CPP_LOG_LEVEL": "ERROR", "GLOG_minloglevel": "2"}


def torch_version():
    """("2", "10", "0")"""
    done = subprocess.run([os.path.join(torch_folder(), "bin", "python"), "-c", "import importlib.metadata as m; print(m.version('torch'))"],
                          capture_output=True, text=True, check=True)
    return done.stdout.split("+")[0].strip().split(".")


def check(build, ranks, programs):
    torchrun = os.path.join(torch_folder(), "bin", "torchrun")
    with Line(build, devices=ranks, name="train") as line:
        status, out, err = line.run(
            [torchrun, "--standalone", "--nproc_per_node", str(ranks), os.path.join(HERE, "train.py"), *programs],
            (), 600, {**QUIET, "TMPDIR": line.folder})
        assert status == 0, (status, out, err)
        ours = [text for text in err.splitlines() if text.startswith("ddpcheck")]
        assert len(ours) <= 3, "%d lines of ours on stderr:\n%s" % (len(ours), "\n".join(ours))
        assert "computes no numbers for this program" in ours[0] and "no finding" in ours[-1], ours
        # Not DC6xx: on a busy machine one rank does come later than the others.
        findings = [(one["code"], one["severity"]) for one in line.report()[1] if not one["code"].startswith("DC6")]
        assert findings == [], (findings, err)
        _, versions, _ = line.call([line.tool, "sql", line.trace, "SELECT DISTINCT name, version FROM library"])
        assert "PyTorch" in versions and "".join("%02d" % int(part) for part in torch_version()).lstrip("0") in versions, versions
        assert out.count("done:") >= (10 if programs in (["ways"], ["examples"]) else len(programs)), out
        print("%d ranks: %d programs, no finding" % (ranks, out.count("done:")), flush=True)


def main():
    # Two jobs: of more communicators than these have, not all streams are watched (DC903).
    for ranks in (2, 4):
        for programs in [sys.argv[2:]] if sys.argv[2:] else (["ways"], ["examples"]):
            check(sys.argv[1], ranks, programs)


if __name__ == "__main__":
    main()
