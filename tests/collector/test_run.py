"""`ddpcheck run` and the command line: statuses, signals, messages. With a plain shell in place of a job where no NCCL
is needed; parts that need libddpcheck.so are left out where it was not built."""

import os
import pty
import select
import signal
import subprocess
import sys
import tempfile
import time

build = os.path.abspath(sys.argv[1])
TOOL = os.path.join(build, "bin", "ddpcheck")
SHIM = os.path.join(build, "lib", "libddpcheck.so")


def call(*arguments, timeout=300, **more):
    return subprocess.run([TOOL, *arguments], capture_output=True, text=True, timeout=timeout, **more)


def check(what, condition, *details):
    assert condition, (what, *details)


def command_line():
    cases = [
        (["--version"], 0, "ddpcheck ", ""), (["--help"], 0, "Usage: ddpcheck", ""), ([], 2, "", "Usage: ddpcheck"),
        (["reprot"], 2, "", "did you mean 'report'?"), (["collect"], 2, "", "missing DIR"),
        (["collect", "--dameon", "x"], 2, "", "did you mean --daemon?"), (["collect", "a", "b"], 2, "", "only one DIR is possible"),
        (["run", "--emulate", "x", "--", "ls"], 2, "", "needs a number"), (["run", "--on-finding=stop", "ls"], 2, "", "is one of warn|abort"),
        (["run", "--timeout"], 2, "", "needs an argument"), (["run"], 2, "", "missing PROGRAM"), (["run", "--help"], 0, "--error-exitcode N", ""),
        (["version"], 0, "ddpcheck ", ""), (["help", "run"], 0, "--error-exitcode N", ""), (["help"], 0, "Usage: ddpcheck", ""), (["help", "--help"], 0, "Usage: ddpcheck [--version", ""),
        (["help", "reprot"], 2, "", "did you mean 'report'?"), (["run"], 2, "", "try 'ddpcheck run -- ./train'"),
        (["run", "-z", "ls"], 2, "", "no option -z"),
        (["html", "trace"], 2, "", "'html' is a format, no command: ddpcheck export -f html"),
        (["export", "html", "trace"], 2, "", "no trace 'html'; a format is given by -f html"),
        (["export", "html", "-o", "x.html"], 2, "", "a format is given by -f html"), (["doctor", "--nonsense"], 2, "", "no option --nonsense"),
        (["collect", "/proc/self/nothing"], 2, "", "there is no directory /proc/self/nothing: name the directory that the job records into"),
        (["run", "-o", "/dev/null", "--", "true"], 2, "", "can't use /dev/null as trace directory: it is a file"),
        (["run", "-o", "/proc/self/nothing", "--", "true"], 2, "", "can't create the trace directory"),
        (["run", "--hub", "bad://host", "--", "true"], 2, "", "--hub is 'auto', or an address"),
        (["run", "--", "/tmp"], 126, "", "Permission denied (it is a directory)"), (["stacks"], 2, "", "missing --pid PID"),
        (["import", "-o", "/proc/self/x.db", "/dev/null"], 2, "", "/dev/null: it is empty\nddpcheck: nothing was imported\n"),
        (["import", "-o", "/proc/self/x.db", "--format", "xx", "a"], 2, "", "--format is one of flight-recorder|"),
        (["report", "/no/such/trace"], 2, "", "there is no trace /no/such/trace; name a directory"),
        (["collect", "/dev/null"], 2, "", "/dev/null is not a directory: name the directory that the job records into"),
        (["collect", "-d", "/proc/self/nothing"], 2, "", "there is no directory"),
    ]
    for arguments, status, out, err in cases:
        done = call(*arguments)
        check(arguments, done.returncode == status and out in done.stdout and err in done.stderr, done)
    check("80 columns", max(map(len, call("--help").stdout.split("\n"))) <= 80, call("--help"))
    full = subprocess.run([TOOL, "--help"], stdout=open("/dev/full", "w"), stderr=subprocess.PIPE, text=True)
    check("full", full.returncode == 2 and "can't write the output" in full.stderr, full)
    with tempfile.TemporaryDirectory() as folder:
        open(os.path.join(folder, os.uname().nodename + ".db"), "w").write("this is no database, it is a letter to a friend\n" * 50)
        done = call("collect", folder)
        check("no database", done.returncode == 2 and "is not a database" in done.stderr, done)
    with tempfile.TemporaryDirectory() as folder:
        import sqlite3
        path = os.path.join(folder, os.uname().nodename + ".db")
        sqlite3.connect(path).executescript("CREATE TABLE recipes(name)")
        done = call("collect", folder)
        check("foreign", done.returncode == 2 and "another program" in done.stderr, done)
        sqlite3.connect(path).executescript("PRAGMA application_id = 0x44445043; PRAGMA user_version = 2000")
        done = call("collect", folder)
        check("newer", done.returncode == 2 and "trace schema 2.0" in done.stderr, done)


def no_nccl_call():
    """The trace of a program that never called NCCL: the same answer from everybody, and it leads on."""
    with tempfile.TemporaryDirectory() as folder:
        done = call("run", "-o", folder, "--", "true")
        answer = "made no NCCL call that ddpcheck saw; to find out why: "
        check("true", done.returncode == 0 and answer + "ddpcheck doctor -- true" in done.stderr, done)
        for reader, status in ((["report"], 2), (["tui", "--once"], 2), (["stacks"], 2), (["collect"], 0)):
            done = call(*reader, folder)
            check(reader, done.returncode == status and answer + "'ddpcheck doctor" in done.stderr, done)
    with tempfile.TemporaryDirectory() as folder:       # a program that waits to be told to go on, before its first call
        job = subprocess.Popen([TOOL, "run", "-q", "-o", folder, "--", "sh", "-c", "echo ready; read line"], stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE, text=True)
        check("ready", job.stdout.readline() == "ready\n", None)
        done = call("report", folder)
        check("still runs", done.returncode == 2 and "still runs, and has not called NCCL yet" in done.stderr, done)
        job.communicate("\n")
    with tempfile.TemporaryDirectory() as folder:
        done = call("collect", os.path.join(folder, "tpyo"))
        check("typo", done.returncode == 2 and "there is no directory " + folder in done.stderr and not os.listdir(folder), done)
        done = call("collect", folder)
        check("foreign", done.returncode == 2 and "no trace database" in done.stderr and "ddpcheck run -o" in done.stderr and
              not os.listdir(folder), done)
        for name in "second", "first":
            os.mkdir(os.path.join(folder, name))
            open(os.path.join(folder, name, "host.db"), "w").close()
        for reader in ["report"], ["tui", "--once"], ["stacks"], ["collect"]:
            done = call(*reader, folder)
            check("parent", done.returncode == 2 and folder + " is no trace, but holds 2: first, second; name one, such as %s/first" % folder in done.stderr,
                  done)


def doctor():
    done = call("doctor", "--verbose", "--", "/bin/ls")
    check("doctor", done.returncode in (0, 1) and "LD_PRELOAD reaches it" in done.stdout and "\033" not in done.stdout, done)
    done = call("doctor", "--color=always", "--", "/no/such/program")
    check("doctor", done.returncode == 1 and "there is no program" in done.stdout and "\033[31m" in done.stdout, done)
    with tempfile.TemporaryDirectory() as folder:
        files = {"noise": b"\x7fELF" + b"\xa5" * 200, "short": b"\x7fELF", "text": b"hello\n", "loop": b"#!" + folder.encode() + b"/loop\n"}
        for name, content in files.items():
            path = os.path.join(folder, name)
            open(path, "wb").write(content)
            os.chmod(path, 0o755)
            done = call("doctor", "--", path)
            check(name, done.returncode == 1, done)


def statuses(folder):
    trace = os.path.join(folder, "trace")
    for script, status in (("exit 0", 0), ("exit 7", 7), ("kill -TERM $$", 143), ("kill -KILL $$", 137)):
        done = call("run", "-q", "-o", trace, "--", "sh", "-c", script)
        check(script, done.returncode == status and done.stderr == "", done)
    # A PATH of readable folders: where one is not, as root's for another user, the error is that the program can't be reached.
    done = call("run", "-o", trace, "--", "no-such-program-here", env={**os.environ, "PATH": "/usr/bin:/bin"})
    check("not found", done.returncode == 127 and "can't run no-such-program-here" in done.stderr, done)
    done = call("run", "-o", trace, "--", "/etc/passwd")
    check("not executable", done.returncode == 126, done)
    done = call("run", "-o", trace, "--", "true")
    check("no NCCL", done.returncode == 0 and "no NCCL call" in done.stderr, done)
    done = call("run", "-q", "-o", trace, "--", "sh", "-c", "echo $DDPCHECK_DIR; echo $LD_PRELOAD", env={**os.environ, "LD_PRELOAD": ""})
    check("environment", done.stdout.split() == [os.path.realpath(trace), os.path.realpath(SHIM)], done)
    done = call("run", "-q", "-o", trace, "sh", "-c", "cat; exit 3", input="through\n")
    check("stdin", done.returncode == 3 and done.stdout == "through\n", done)


def name_in_ps(folder):
    """The collector, which runs /proc/self/exe, is "ddpcheck" in ps and top, not "exe"."""
    script = """if True:
        import os, glob
        for path in glob.glob("/proc/[0-9]*/stat"):
            try:
                parent = int(open(path).read().rpartition(")")[2].split()[1])
                words = open(path.replace("stat", "cmdline"), "rb").read().split(b"\\0")
                if parent == os.getppid() and words[:2] == [b"ddpcheck", b"collect"]:
                    print(open(path.replace("stat", "comm")).read(), end="")
            except (FileNotFoundError, ProcessLookupError):
                pass                                        # it ended meanwhile
        """
    done = call("run", "-q", "-o", os.path.join(folder, "trace"), "--", sys.executable, "-c", script)
    check("name", done.returncode == 0 and done.stdout == "ddpcheck\n", done)


def no_zombies(folder):
    """Where another `run` collects already, the collector of the second exits at once; the second waits for it."""
    script = """if True:
        import glob, os, sys, time
        end = time.monotonic() + 60
        left = True
        while left and time.monotonic() < end:
            time.sleep(0.01)
            left = []
            for path in glob.glob("/proc/[0-9]*/stat"):
                try:
                    fields = open(path).read().rpartition(")")[2].split()
                    pid = int(path.split("/")[2])
                    left += [(pid, fields[0])] if int(fields[1]) == os.getppid() and pid != os.getpid() else []
                except (FileNotFoundError, ProcessLookupError):
                    pass                                    # it ended meanwhile
        sys.exit(str(left) if left else 0)
        """
    trace = os.path.join(folder, "trace")
    first = subprocess.Popen([TOOL, "run", "-q", "-o", trace, "--", "sh", "-c", "echo ready; read line"], stdin=subprocess.PIPE,
                             stdout=subprocess.PIPE, text=True)
    check("ready", first.stdout.readline() == "ready\n")
    second = call("run", "-q", "-o", trace, "--", sys.executable, "-c", script)
    first.communicate("end\n", timeout=120)
    check("left behind", second.returncode == 0 and first.returncode == 0, second)


def signals(folder):
    trace = os.path.join(folder, "trace")
    job = subprocess.Popen([TOOL, "run", "-q", "-o", trace, "--", "sh", "-c", "trap 'echo caught; exit 5' TERM; echo ready; while :; do sleep 0.05; done"],
                           stdout=subprocess.PIPE, text=True)
    check("ready", job.stdout.readline() == "ready\n")
    job.send_signal(signal.SIGTERM)
    out, _ = job.communicate(timeout=120)
    check("forwarded", job.returncode == 5 and out == "caught\n", job.returncode, out)


def sleeping(marker):
    return subprocess.run(["pgrep", "-f", "^sleep " + marker.replace(".", "[.]")], capture_output=True, text=True).stdout.split()


def timeout_ends_all(folder):
    """A job that ignores SIGTERM and left its process group is gone all the same."""
    trace = os.path.join(folder, "trace")
    marker = "7654.321"
    script = "trap '' TERM; setsid sh -c \"trap '' TERM; sleep %s & wait\" & sleep %s & wait" % (marker, marker)
    done = call("run", "--timeout", "1", "-o", trace, "--", "sh", "-c", script, timeout=300)
    check("timeout", done.returncode == 137 and "no progress for 1 s" in done.stderr, done)
    check("descendants", not sleeping(marker), sleeping(marker))


def outlives_output(folder):
    """Whoever reads the output goes away, as `| head -1`, or does not read on, as `| less`: the job is ended all the same."""
    marker = "7654.322"
    for what, script in (("gone", "echo first; exec sleep " + marker), ("not read", "yes first & exec sleep " + marker)):
        job = subprocess.Popen([TOOL, "run", "--timeout", "1", "-o", os.path.join(folder, "trace"), "--", "sh", "-c", script],
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, bufsize=1)
        check(what, job.stdout.readline() == "first\n")
        if what == "gone":
            job.stdout.close()
            check(what, job.wait(timeout=120) == 128 + signal.SIGTERM, job.returncode)
        else:
            end = time.monotonic() + 120
            while sleeping(marker) and time.monotonic() < end:
                time.sleep(0.05)
            check(what, not sleeping(marker))
            job.communicate(timeout=120)
        check(what, not sleeping(marker))


def terminal(folder):
    """Ctrl-C on the terminal reaches the job, not the collector; the terminal comes back."""
    trace = os.path.join(folder, "trace")
    pid, master = pty.fork()
    if pid == 0:
        signal.signal(signal.SIGINT, signal.SIG_DFL)       # a shell can't trap what it finds ignored, as in the background
        os.execv(TOOL, [TOOL, "run", "-q", "-o", trace, "--", "sh", "-c", "trap 'echo caught; exit 9' INT; echo ready; while :; do sleep 0.05; done"])
    output = b""
    end = time.monotonic() + 300
    sent = False
    while time.monotonic() < end:
        if not select.select([master], [], [], 1)[0]:
            continue
        try:
            output += os.read(master, 1024)
        except OSError:
            break
        if b"ready" in output and not sent:
            os.write(master, b"\x03")
            sent = True
    else:
        os.kill(pid, signal.SIGTERM)
        check("Ctrl-C", False, output)
    _, status = os.waitpid(pid, 0)
    check("Ctrl-C", os.waitstatus_to_exitcode(status) == 9 and b"caught" in output, status, output)


def no_place_for_rings(folder):
    """No directory for rings can be made: the job starts all the same, and that nothing is recorded is said."""
    script = 'for at in /dev/shm /tmp; do mount -t tmpfs -o ro tmpfs "$at" || exit 77; done; exec "$@"'
    trace, build_folder = os.path.join(folder, "unrecorded"), os.path.dirname(os.path.dirname(TOOL))
    if build_folder.startswith("/tmp/"):
        print("not tested: what was built lies in /tmp, which is hidden here")
        return
    if folder.startswith("/tmp/"):
        script = 'mount --bind "$FOLDER" /mnt && mount -t tmpfs -o ro tmpfs /dev/shm && mount -t tmpfs -o ro tmpfs /tmp || exit 77; exec "$@"'
        trace = "/mnt/unrecorded"
    done = subprocess.run(["unshare", "--mount", "sh", "-c", script, "sh", TOOL, "run", "--timeout", "1", "-o", trace, "--", "sh", "-c",
                           "sleep 2; echo ran; exit 5"], capture_output=True, text=True, timeout=300,
                          env={**os.environ, "TMPDIR": "/proc", "FOLDER": folder}, cwd="/")
    if done.returncode in (1, 77) and "ran" not in done.stdout:
        print("not tested: nothing can be mounted here: " + done.stderr)
        return
    check("no rings", done.returncode == 5 and done.stdout == "ran\n", done)
    check("no rings", "no place for the ring files" in done.stderr and "nothing of it is recorded" in done.stderr, done.stderr)
    check("no rings", done.stderr.count("\n") == 1, done.stderr)


def main():
    command_line()
    doctor()
    if not os.path.exists(SHIM):
        print("command line and doctor ok; 'run' needs libddpcheck.so, which was not built")
        return
    no_nccl_call()
    with tempfile.TemporaryDirectory() as folder:
        for part in (statuses, name_in_ps, no_zombies, signals, timeout_ends_all, outlives_output, terminal, no_place_for_rings):
            part(folder)
            print("ok", part.__name__)


if __name__ == "__main__":
    main()
