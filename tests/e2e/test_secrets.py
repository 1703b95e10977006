"""Secrets in the arguments and errors of a program are in nothing that ddpcheck keeps or prints; imported databases are
their user's alone."""

import os
import stat
import sys

from line import Line

build = os.path.abspath(sys.argv[1])
SECRETS = ("hf-supersecret", "hunter-two", "sk-0123456789", "db-pass-word")
JOB = """
import ctypes, sys
nccl = ctypes.CDLL("libnccl.so.2")
comms = (ctypes.c_void_p * 2)()
assert nccl.ncclCommInitAll(comms, 2, None) == 0
raise RuntimeError("login failed: token=hf-supersecret, https://me:db-pass-word@host")
"""
LOG = """[rank0]: Traceback (most recent call last):
[rank0]:   File "/train.py", line 3, in <module>
[rank0]:     login()
[rank0]: RuntimeError: login failed with password=hunter-two at https://me:db-pass-word@host
"""


def check_kept(folder):
    for path, _, names in os.walk(folder):
        for name in names:
            with open(os.path.join(path, name), "rb") as file:
                data = file.read()
            found = [secret for secret in SECRETS if secret.encode() in data]
            assert not found, (name, found)


def record():
    with Line(build, devices=2) as line:
        program = os.path.join(line.folder, "job.py")
        with open(program, "w", encoding="ascii") as file:
            file.write(JOB)
        status, _, err = line.run([sys.executable, program, "--api-key=sk-0123456789", "--password", "hunter-two"],
                                  environment={"RANK": "0", "WORLD_SIZE": "1"})
        assert status == 1, (status, err)
        check_kept(line.trace)
        command, = line.query("SELECT command FROM process")[0]
        assert command.endswith("--api-key=*** --password ***"), command
        texts = [text for text, in line.query("SELECT text FROM string")]
        assert "RuntimeError: login failed: token=***, https://***@host" in texts, texts


def import_log():
    with Line(build) as line:
        log, database = os.path.join(line.folder, "job.log"), os.path.join(line.folder, "job.db")
        with open(log, "w", encoding="ascii") as file:
            file.write(LOG)
        before = os.umask(0o022)
        status, out, err = line.call([line.tool, "import", "-o", database, log])
        os.umask(before)
        assert os.path.exists(database), (status, out, err)
        assert stat.S_IMODE(os.stat(database).st_mode) == 0o600, oct(os.stat(database).st_mode)
        status, out, err = line.call([line.tool, "report", database])
        assert "failed with password=*** at" in " ".join(out.split()) and not any(secret in out for secret in SECRETS), (out, err)
        os.unlink(log)
        check_kept(line.folder)


def main():
    record()
    import_log()
    print("ok secrets")


if __name__ == "__main__":
    main()
