"""The recipes of docs/recipes: the manifest parses, and each option and variable of ddpcheck in them exists.

test_recipes.py DDPCHECK"""

import glob
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
RECIPES = os.path.join(ROOT, "docs", "recipes")
READERS = ("cmd", "collector", "interpose", "lib")


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def options_of(tool, command):
    done = subprocess.run([tool, command, "--help"], capture_output=True, text=True, timeout=300, check=True)
    return set(re.findall(r"(?<![\w-])(--[a-z][\w-]*|-\w)\b", done.stdout))


def check_command(tool, words):
    """`ddpcheck COMMAND OPTIONS [-- PROGRAM]`"""
    own = words[2:words.index("--")] if "--" in words else words[2:]
    used = [word for word in own if word.startswith("-")]
    assert set(used) <= options_of(tool, words[1]), (words, used)


def check_variables(text):
    known = "".join(read(path) for room in READERS
                    for path in glob.glob(os.path.join(ROOT, room, "**", "*.[ch]"), recursive=True))
    used = set(re.findall(r"\bDDPCHECK_[A-Z_]+\b", text))
    assert used and all('"%s"' % name in known for name in used), used


def check_manifest(tool):
    text = read(os.path.join(RECIPES, "kubernetes.yaml"))
    check_variables(text)
    commands = [re.split(r",\s*", words) for words in re.findall(r"command: \[(ddpcheck, [^]]*)\]", text)]
    assert [words[1] for words in commands] == ["hub", "run"], commands
    for words in commands:
        check_command(tool, words)
    try:
        import yaml
    except ImportError:
        print("kubernetes.yaml is not parsed: this Python has no module yaml")
        return
    parts = list(yaml.safe_load_all(text))
    services = {part["metadata"]["name"] for part in parts if part["kind"] == "Service"}
    assert {"ddpcheck-hub", "training"} <= services, services
    for part in parts:
        pod = part["spec"].get("template", part)["spec"] if part["kind"] in ("Job", "Pod") else {}
        mounts = {mount["name"] for container in pod.get("containers", ()) for mount in container["volumeMounts"]}
        assert mounts == {volume["name"] for volume in pod.get("volumes", ())}, part


def check_image():
    packages = re.search(r"apt-get install -y --no-install-recommends ([\w -]+?) &&", read(os.path.join(RECIPES, "Dockerfile")))
    setup = read(os.path.join(ROOT, "tools", "setup"))
    assert packages and all(re.search(r"(?<![\w-])%s(?![\w-])" % name, setup) for name in packages[1].split()), packages


def check_ray(tool):
    """Without Ray: a hub starts, gives the workers their variables, answers, and ends."""
    path = os.path.join(RECIPES, "ray.py")
    text = read(path)
    check_variables(text)
    recipe = {"__name__": "recipe"}
    exec(compile(text, path, "exec"), recipe)       # its functions, not the job
    used = set(re.findall(r'"(--[a-z]+)"', text))
    assert used and used <= options_of(tool, "hub"), used
    if not shutil.which("nats-server", path=os.environ["PATH"] + ":/usr/sbin"):
        print("ray.py is not run: there is no nats-server")
        return
    recipe["DDPCHECK"] = os.path.dirname(os.path.dirname(os.path.abspath(tool)))
    with tempfile.TemporaryDirectory() as folder, socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        taken.close()
        with recipe["Watch"]("--dir", folder, "--http", "127.0.0.1:0", "--port", str(port), "--listen", "127.0.0.1") as watch:
            assert os.path.exists(watch.environment["LD_PRELOAD"]) and watch.environment["DDPCHECK_HUB"] == watch.address
            assert watch.page.startswith("http://127.0.0.1:"), watch.page
            answer = recipe["report"](watch.address)
        assert watch.hub.returncode == 0, (watch.hub.returncode, answer)


def main():
    check_manifest(sys.argv[1])
    check_ray(sys.argv[1])
    check_image()
    print("the recipes are as ddpcheck is")


if __name__ == "__main__":
    main()
