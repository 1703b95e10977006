"""tools/setup where it can't install: it names what is missing, on Debian by package, elsewhere by library, and installs
nothing. `--demo` asks for no more than the demo needs."""

import os
import subprocess
import sys
import tempfile

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))
SETUP = os.path.join(ROOT, "tools", "setup")
NEEDED = ("bash", "dirname", "grep", "env", "sh")


def run(programs, *arguments, **environment):
    """tools/setup with no programs but the needed ones and `programs`: {name: script}."""
    with tempfile.TemporaryDirectory(prefix="ddpcheck-setup-") as folder:
        for name in NEEDED:
            found = next(path for path in ("/usr/bin/" + name, "/bin/" + name) if os.path.exists(path))
            os.symlink(found, os.path.join(folder, name))
        for name, text in programs.items():
            path = os.path.join(folder, name)
            with open(path, "w") as file:
                file.write("#!/bin/sh\n" + text + "\n")
            os.chmod(path, 0o755)
        done = subprocess.run([os.path.join(folder, "bash"), SETUP, *arguments], env={"PATH": folder, **environment}, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=120)
        return done.returncode, done.stdout + done.stderr


LISTS = 'if [ "$1" = policy ]; then echo "release v=12,o=Debian"; exit; fi; '
DEBIAN = {"dpkg-query": "exit 1", "apt-get": "echo must not run; exit 0", "id": "echo 1000", "python3": "exit 0"}


# With no program but Python and no library at all. A header may be there: what does not follow is not compared.
MANAGERS = {
    "dnf": "dnf install cmake ninja-build gcc gcc-c++ pkgconf-pkg-config 'pkgconfig(sqlite3)' 'pkgconfig(libdw)' 'pkgconfig(jansson)' 'pkgconfig(ncursesw)' 'pkgconfig(panelw)' " \
        "'pkgconfig(libpng)' 'pkgconfig(zlib)' 'pkgconfig(libzstd)' 'pkgconfig(libarchive)' 'pkgconfig(libmicrohttpd)' openblas-devel",
    "zypper": "zypper install cmake ninja gcc gcc-c++ pkg-config 'pkgconfig(sqlite3)' 'pkgconfig(libdw)' 'pkgconfig(jansson)' 'pkgconfig(ncursesw)' 'pkgconfig(panelw)' " \
        "'pkgconfig(libpng)' 'pkgconfig(zlib)' 'pkgconfig(libzstd)' 'pkgconfig(libarchive)' 'pkgconfig(libmicrohttpd)' libopenblas_pthreads-devel",
    "pacman": "pacman -S --needed cmake ninja gcc pkgconf sqlite libelf jansson ncurses libpng zlib zstd libarchive libmicrohttpd openblas",
}


def main():
    status, text = run(DEBIAN, "--demo")
    assert status == 1 and "only root can install what is missing" in text, (status, text)
    assert "libsqlite3-dev" in text and "must not run" not in text, text
    for package in ("chromium", "clang", "mpich", "fish", "rpm", "libcmocka-dev"):
        assert " " + package not in text, text
    status, all_of_it = run(DEBIAN)
    assert status == 1 and " chromium" in all_of_it and " libcmocka-dev" in all_of_it, all_of_it

    status, text = run({**DEBIAN, "sudo": "exit 1"}, "--demo")          # a password would be asked for
    assert status == 1 and "only root can install" in text, text

    # Not root on a release that lacks a package which only tests need: alone, and with one that the build needs.
    for lacked, status, asked in ("fish", 0, None), ("fish|zsh|cmake", 1, "cmake"):
        programs = {**DEBIAN, "dpkg-query": "case $4 in %s) exit 1 ;; esac; echo install ok installed" % lacked,
                    "apt-cache": LISTS + '[ "$2" = cmake ]'}
        with tempfile.TemporaryDirectory(prefix="ddpcheck-setup-") as cuda:
            for name in "include/nccl.h", "bin/nvcc":
                os.makedirs(os.path.dirname(os.path.join(cuda, name)))
                with open(os.path.join(cuda, name), "w") as file:
                    os.chmod(file.fileno(), 0o755)
            done, text = run(programs, CUDA_HOME=cuda)
        assert done == status and " fish: tests that need it will not run" in text and "must not run" not in text, (done, text)
        assert ("only root can install" in text) == (asked is not None), text
        assert asked is None or "    apt-get install --no-install-recommends %s\n" % asked in text, text
    programs["apt-cache"] = "false"                                     # no package lists: nothing is known of a release
    status, text = run(programs)
    assert status == 1 and "no-install-recommends cmake zsh fish\n" in text and "this release" not in text, text

    # As root on a release that lacks a package which only tests need, and one that the build needs.
    status, text = run({**DEBIAN, "id": "echo 0", "rm": "exit 1", "apt-get": 'echo "$@" >&2', "apt-cache": LISTS + 'test "$2" != fish -a "$2" != cmake'})
    assert "this release has no fish: tests that need it will not run" in text, text
    installed = next(line for line in text.splitlines() if line.startswith("install "))
    assert " fish" not in installed and " cmake " in installed and " zsh " in installed, text

    status, text = run({"cc": "exit 0", "c++": "exit 0", "cmake": "exit 0", "ninja": "exit 0", "python3": "exit 0",
                        "pkg-config": 'test "$2" != libpng'}, "--demo")
    assert status == 1 and "this is not Debian" in text and "    libpng (pkg-config)\n" in text and "cmake" not in text, text
    assert "this should do it" not in text, text
    for manager, command in MANAGERS.items():
        status, text = run({manager: "echo must not run", "python3": "exit 0"}, "--demo")
        assert status == 1 and "    " + command in text and "must not run" not in text, text

    status, text = run({}, "--nothing")
    assert status == 2 and text.startswith("usage: "), text


if __name__ == "__main__":
    main()
