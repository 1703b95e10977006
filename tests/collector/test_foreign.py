"""Directories that another user prepared: neither a collector, nor a run, nor the shim, nor a hub writes into them; each says
whose they are. What administrators and users prepare for themselves works: groups, links, mounts, sticky directories.

test_foreign.py BUILD"""

import os
import subprocess
import sys
import tempfile

STRANGER = 12345
MINE = os.geteuid()


def run(build, *arguments, **more):
    return subprocess.run([os.path.join(build, "bin", "ddpcheck"), *arguments], capture_output=True, text=True, check=False,
                          stdin=subprocess.DEVNULL, timeout=120, **more)


def prepare(folder, name, owner=MINE, mode=0o700):
    path = os.path.join(folder, name)
    os.mkdir(path)
    os.chmod(path, mode)
    os.chown(path, owner, -1)
    return path


def link(folder, name, target, owner=MINE):
    path = os.path.join(folder, name)
    os.symlink(target, path)
    os.lchown(path, owner, -1)
    return path


def refused_directories(folder):
    """Path -> what the message must contain."""
    found = {prepare(folder, "open", mode=0o777): "every user may write"}
    if MINE == 0:
        own = prepare(folder, "own")
        found[prepare(folder, "foreign", STRANGER)] = "belongs to user 12345"
        found[prepare(folder, "group", STRANGER, 0o2775)] = "belongs to user 12345"
        found[link(folder, "link", own, STRANGER)] = "a link of user 12345"
        found[link(folder, "slash", own, STRANGER) + "/"] = "a link of user 12345"
        found[link(folder, "to-foreign", os.path.join(folder, "foreign"))] = "belongs to user 12345"
    return found


def good_directories(folder):
    own = prepare(folder, "good-own", mode=0o755)
    parent = prepare(folder, "scratch", STRANGER if MINE == 0 else MINE, 0o755)
    return [own, prepare(folder, "good-group", mode=0o2775), prepare(folder, "good-sticky", mode=0o1777),
            link(folder, "good-link", own), os.path.join(parent, "new"),
            os.path.join(link(folder, "good-parent", parent, STRANGER if MINE == 0 else MINE), "new-behind-a-link")]


def check_trace_directories(build, folder):
    for path, why in refused_directories(folder).items():
        before = sorted(os.listdir(path))
        done = run(build, "run", "-o", path, "--", "true")
        assert done.returncode == 2 and why in done.stderr and "another with -o" in done.stderr, (path, done)
        assert sorted(os.listdir(path)) == before, path
    for path in good_directories(folder):
        done = run(build, "run", "-q", "-o", path, "--", "true")
        assert done.returncode == 0 and "can't use" not in done.stderr and "rings" in os.listdir(path), (path, done)


def check_mounts(build, folder):
    """A volume of a container may belong to anybody and be open to all (an emptyDir of Kubernetes)."""
    path = prepare(folder, "volume")
    script = 'mount -t tmpfs -o mode=0777,uid=%d tmpfs "$1" && "$2" run -q -o "$1" -- true; ls "$1"' % STRANGER
    tool = os.path.join(build, "bin", "ddpcheck")
    done = subprocess.run(["unshare", "--mount", "sh", "-c", script, "sh", path, tool], capture_output=True, text=True, check=False)
    if "unshare" in done.stderr or "mount:" in done.stderr:
        print("no mounts here: " + done.stderr.strip())
        return
    assert "rings" in done.stdout and "can't use" not in done.stderr, done


def check_planted_files(build, folder):
    """In a directory that others may write into, too."""
    if MINE != 0:
        return
    path = prepare(folder, "sticky", mode=0o1777)
    run(build, "run", "-q", "-o", path, "--", "true")
    for name in os.listdir(path):
        if name.startswith("collector"):
            os.unlink(os.path.join(path, name))
    for name in ("collector.lock", os.uname().nodename.replace("/", "-") + ".db"):
        file = os.path.join(path, name)
        with open(file, "w", encoding="ascii"):
            pass
        os.chmod(file, 0o666)
        os.chown(file, STRANGER, -1)
        done = run(build, "collect", path)
        assert done.returncode == 2 and name in done.stderr and "user 12345" in done.stderr, done
        assert os.path.getsize(file) == 0, name
        os.unlink(file)


def check_pipes(build, folder):
    """A pipe in a file's place is not waited for, neither by a run nor by a report."""
    path = prepare(folder, "pipes")
    rings = os.path.join(path, "rings")
    os.mkfifo(rings)
    assert run(build, "report", path).returncode == 2
    done = run(build, "run", "-q", "-o", path, "--", "true")
    assert done.returncode == 0 and os.path.isfile(rings), done


def hub_refuses(build, folder, path, why):
    done = subprocess.run([os.path.join(build, "bin", "ddpcheck"), "hub", "--dir", path, "--any-port", "--listen", "127.0.0.1"],
                          capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL, timeout=60, cwd=folder)
    if "nats" in done.stderr and "install" in done.stderr and "can't use" not in done.stderr:
        print("no hub here: " + done.stderr.strip())
        return False
    assert done.returncode == 2 and why in done.stderr, (path, why, done)
    return True


def check_hubs(build, folder):
    victim = os.path.join(folder, "precious")
    with open(victim, "w", encoding="ascii") as file:
        file.write("precious\n")
    for path, why in refused_directories(prepare(folder, "hubs")).items():
        if not hub_refuses(build, folder, path, why):
            return
    for name, why in (("token", "is a link"), ("server.log", "is a link")):
        path = prepare(folder, "hub-" + name)
        os.symlink(victim, os.path.join(path, name))
        hub_refuses(build, folder, path, why)
    if MINE == 0:
        path = prepare(folder, "hub-jetstream")
        prepare(path, "jetstream", STRANGER)
        hub_refuses(build, folder, path, "jetstream: it belongs to user 12345")
        path = prepare(folder, "hub-known-token", mode=0o1777)
        with open(os.path.join(path, "token"), "w", encoding="ascii") as file:
            file.write("known-to-a-stranger")
        os.chmod(file.name, 0o600)
        os.chown(file.name, STRANGER, -1)
        hub_refuses(build, folder, path, "token: it belongs to user 12345")
    with open(victim, encoding="ascii") as file:
        assert file.read() == "precious\n"


def main():
    build = os.path.abspath(sys.argv[1])
    for check in (check_trace_directories, check_mounts, check_planted_files, check_pipes, check_hubs):
        with tempfile.TemporaryDirectory(prefix="ddpcheck-foreign-") as folder:
            check(build, folder)
    print("ok foreign directories")


if __name__ == "__main__":
    main()
