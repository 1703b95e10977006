"""Being asked where its threads stand, again and again, changes nothing for a job."""

import os
import subprocess
import sys
import time

from common import JOB, Line, pythons

ASKER = os.path.join(sys.argv[1], "tests", "python", "python_asker")
WAITS = os.path.join(os.path.abspath(sys.argv[1]), "tests", "python", "python_waits")


def asked(program, devices, times, pause_ms):
    """(status, stdout, what the asker said) of a program that is asked all the time; it must have no finding. It reads in a file
    how many times it was asked: on a busy machine it could have ended before."""
    with Line(sys.argv[1], devices=devices, name="quiet") as line:
        command = [line.tool, "run", "--emulate", str(devices), "-o", line.trace, "--", *program]
        rounds = os.path.join(line.folder, "rounds")
        with open(rounds, "wb") as file:
            file.write(bytes(4))
        job = subprocess.Popen(command, cwd=line.folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                               text=True, env={**os.environ, "DDPCHECK_TEST_ROUNDS": rounds})
        rings = os.path.join(line.trace, "rings")
        end = time.monotonic() + 300
        while time.monotonic() < end and not (os.path.exists(rings) and ready(rings, devices)):
            time.sleep(0.01)
        with open(rings, encoding="utf-8") as file:
            folder = file.read().rstrip("\n")
        said = subprocess.run([ASKER, folder, str(times), str(pause_ms), rounds], capture_output=True, text=True, check=False,
                              timeout=600)
        out, err = job.communicate(timeout=300)
        assert said.returncode == 0, said.stdout + said.stderr + err
        _, findings, _ = line.report()
        assert findings == [], (findings, err)
        told = line.query("SELECT count(*) FROM event WHERE api = (SELECT number FROM api WHERE name = 'notice_thread_stack')")
        assert told[0][0] > 0, "nobody told anything"
        check_native(line)
        return job.returncode, out, said.stdout.strip()


# Calls in which a signal would show: their callers are found without one.
FOLLOWED = {"__poll", "__select", "epoll_wait", "__recv", "__sigtimedwait", "clock_nanosleep"}


def check_native(line):
    """Native stacks of waits.c go from the system call to main, interrupted or not."""
    stacks = {}
    for seq, function in line.query("SELECT seq, function FROM v_thread_stack WHERE is_main AND kind = 'native' ORDER BY seq, depth"):
        stacks.setdefault(seq, []).append(function.partition("@")[0])
    followed = [stack for stack in stacks.values() if stack[0] in FOLLOWED and "main" in " ".join(stack)]
    assert stacks, "no native stack"
    if any("waits_for_epoll" in stack for stack in stacks.values()):
        assert {stack[0] for stack in followed} == FOLLOWED, {stack[0] for stack in followed}
        short = [stack for stack in stacks.values() if "main" not in stack]
        assert len(short) <= len(stacks) // 20, short[:5]      # between two calls there is no telling


def ready(rings, processes):
    with open(rings, encoding="utf-8") as file:
        folder = file.read().rstrip("\n")
    if not os.path.isdir(folder):
        return False
    sizes = [os.path.getsize(os.path.join(folder, name)) for name in os.listdir(folder) if name.endswith(".ring")]
    return len(sizes) >= processes and all(sizes)       # a file that is being made is empty


def main():
    status, out, said = asked([WAITS], 1, 100000, 10)
    assert (status, out) == (0, "done\n"), (status, out)
    print("system calls: " + said)
    for python in pythons():
        status, out, said = asked([python, JOB, "churn", "2"], 2, 400, 5)
        assert status == 0, (python, status, out)
        print("%s: %s" % (python, said))
    # Daemon threads that call CUDA while their interpreter ends.
    for python in pythons():
        for _ in range(3):
            with Line(sys.argv[1], devices=2, name="daemons") as line:
                status, out, err = line.run([python, JOB, "daemons", "2"])
                assert status == 0, (python, status, out, err)


if __name__ == "__main__":
    main()
