"""What is written and read: samples, progress, checkpoints."""

import os
import pty
import re
import struct
import subprocess
import tempfile
import time

import running
from running import start, end, run, read_until, losses, must_contain


def case_samples():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "samples.png")
        run("--ranks 2 --iterations 3 --samples " + path)
        with open(path, "rb") as file:
            head = file.read(24)
        if head[:8] != b"\x89PNG\r\n\x1a\n" or struct.unpack(">II", head[16:24]) != (274, 274):
            raise AssertionError("not a PNG of 274 x 274: %r" % head)


def case_progress():
    """On a terminal there is a line with the rate and the time left; elsewhere there is none."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen([running.PROGRAM, "--model", "cnn", "--iterations", "40"], stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE, stderr=theirs)
    os.close(theirs)
    seen = b""
    try:
        while chunk := os.read(ours, 4096):
            seen += chunk
    except OSError:         # Linux: the other side has gone
        pass
    os.close(ours)
    printed = process.communicate(timeout=300)[0].decode()
    if process.returncode != 0 or "images/s," in printed:
        raise AssertionError("exit status %d:\n%s" % (process.returncode, printed))
    last = re.findall(r"iteration (\d+) of 40, (\d+) images/s, (\d+:\d\d) left", seen.decode())[-1]
    if last[0] != "40" or int(last[1]) == 0 or last[2] != "0:00":
        raise AssertionError("the last progress line is %s" % (last,))
    if "left" in run("--model cnn --iterations 4"):
        raise AssertionError("a progress line where there is no terminal")


def resume_gives_the_same_losses(model, more=""):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "checkpoint")
        options = "--model %s --ranks 2 --log-every 1 --dataset-size 96 %s " % (model, more)     # several epochs
        whole = losses(run(options + "--iterations 14"))
        run(options + "--iterations 8 --checkpoint-every 4 --checkpoint " + path)
        out = run(options + "--iterations 14 --resume " + path)
        must_contain(out, "resumed from %s at iteration 8" % path)
        rest = losses(out)
        if rest != {i: v for i, v in whole.items() if i > 8}:
            raise AssertionError("resumed: %s\nuninterrupted: %s" % (rest, whole))
        must_contain(run(options + "--width 4 --resume " + path, expected=2), "written with other options")
        os.truncate(path, os.path.getsize(path) - 7)
        must_contain(run(options + "--resume " + path, expected=2), "cut off or damaged")


def case_resume_gan():
    resume_gives_the_same_losses("gan")


def case_resume_cnn():
    resume_gives_the_same_losses("cnn")


def case_resume_amp():
    """The scale and its count go on: it grows every 5 iterations, and the checkpoint is of iteration 8."""
    resume_gives_the_same_losses("gan", "--amp fp16 --loss-scale 4096 --scale-growth 5")


def case_checkpoint_survives_a_crash():
    """Killed while it writes checkpoints, over and over: what is there is always whole, and no less than before."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "checkpoint")
        reached = 0
        for delay_s in (0, 0.01, 0.02, 0.05, 0.1):
            process = start(("--iterations 100000 --log-every 1 --checkpoint %s --checkpoint-every 1 --elastic" % path).split())
            out = read_until(process, *(["resumed", "iteration %d:" % (reached + 2)] if reached else ["iteration 2:"]))
            time.sleep(delay_s)
            out += end(process)
            must_contain(out if reached else "resumed", "resumed")
            found = re.search(r"resumed from \S+ at iteration (\d+)", run("--resume %s --iterations 1" % path))
            if int(found[1]) < reached:
                raise AssertionError("was at iteration %d, is at %s" % (reached, found[1]))
            reached = int(found[1])
