"""The commands of docs/install.md, as they stand there. Those that build are run by the tests beside this one; what they
run is compared with the page, so that page and tests say the same."""

import os
import re
import sys

from installed import Folder, environment, installing, output

BUILD = os.path.abspath(sys.argv[1])
ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))

# Run elsewhere: the test, and what of the command must be in it.
ELSEWHERE = {
    "cd build/release && cpack -G DEB": ("test_install.py", '"DEB"'),
    "cd build/release && cpack -G RPM": ("test_install.py", '"RPM"'),
    "cd build/release && cpack -G TGZ": ("test_install.py", '"TGZ"'),
    # Unpacked there: to install or remove them would change this machine.
    "apt install ./ddpcheck_*.deb ./ddpcheck-emulator_*.deb ./libddpcheck-preload_*.deb":
        ("test_install.py", 'output("dpkg-deb", "-x", deb["ddpcheck-emulator"]'),
    "apt remove ddpcheck ddpcheck-emulator libddpcheck-preload": ("test_install.py", 'deb["ddpcheck-emulator"]'),
    "dnf install ./ddpcheck-*.rpm ./libddpcheck-preload-*.rpm": ("test_install.py", 'output("rpm2archive", rpm)'),
    "cmake --preset release-portable": ("test_portable.py", '"--preset", "release-portable"'),
    "cmake --build --preset release-portable": ("test_portable.py", '"cmake", "--build", PORTABLE'),
    "cd build/release-portable && cpack -G TGZ": ("test_portable.py", '"cpack", "-G", "TGZ"'),
    "tools/wheel build/release-portable wheels": ("test_portable.py", '"tools/wheel"), PORTABLE'),
    "pip install wheels/ddpcheck-*.whl": ("test_portable.py", '"install", "--no-index", wheel'),
    "pip uninstall ddpcheck": ("test_portable.py", '"uninstall", "--yes", "ddpcheck"'),
    "ddpcheck demo": ("test_install.py", "check_demo("),
    "ddpcheck doctor": ("test_install.py", '"doctor"'),
}


def commands():
    with open(os.path.join(ROOT, "docs/install.md"), encoding="utf-8") as page:
        return [found.group(1) for found in re.finditer(r"^    (\S.*?)(?:\s+#.*)?$", re.sub(r"```.*?```", "", page.read(), flags=re.S), re.M)]


def check(command, folder):
    if command in ELSEWHERE:
        test, text = ELSEWHERE[command]
        with open(os.path.join(os.path.dirname(__file__), test), encoding="utf-8") as file:
            assert text in file.read(), "%s does not run %s" % (test, command)
        return "by " + test
    if command.startswith("make "):
        output("make", "-n", *command.split()[1:], cwd=ROOT)
        return "looked up"
    preset = re.match(r"cmake (?:--build )?--preset (\S+)$", command)
    if preset:
        assert '"%s"' % preset.group(1) in output("cmake", "--list-presets=all", cwd=ROOT), command
        return "looked up"
    if command == "cmake --preset release -D DDPCHECK_TESTS=OFF":
        build = folder / "release"
        output("bash", "-c", command + " -B " + build, cwd=ROOT)
        programs = re.findall(r"^(\S+): (?:C|CXX)_EXECUTABLE_LINKER", output("ninja", "-C", build, "-t", "targets", "all"), re.M)
        others = {"tests/suite_minimal_make"}           # it makes a part of `ddpcheck explain`
        assert "bin/ddpcheck" in programs and not [each for each in programs if each.startswith("tests/") and each not in others], programs
        return "configured"
    prefix = folder / "prefix"
    command = command.replace("build/release", BUILD).replace("/opt/ddpcheck", prefix).replace("-o read_trace", "-o " + folder / "read")
    with installing(BUILD):
        output("bash", "-c", "set -e; " + command, cwd=ROOT, env=environment(
            PATH=os.path.join(prefix, "bin") + ":" + os.environ["PATH"], PKG_CONFIG_PATH=os.path.join(prefix, "lib/pkgconfig")))
    return "run"


def main():
    found = commands()
    assert len(found) >= 12 and set(ELSEWHERE) <= set(found), found
    with Folder("page") as folder:
        for command in found:
            print("%-80s %s" % (command, check(command, folder)), flush=True)


if __name__ == "__main__":
    main()
