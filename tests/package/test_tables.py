"""Manual pages and completions, as made from the option tables: every command has its page, which mandoc accepts, and
each shell offers what --help shows. A shell or mandoc that is not on this machine is said to be left out."""

import fcntl
import os
import pty
import re
import select
import shutil
import struct
import subprocess
import sys
import tempfile
import termios
import time

TOOL = os.path.join(os.path.abspath(sys.argv[1]), "bin", "ddpcheck")
ENVIRONMENT = {**os.environ, "PATH": os.path.dirname(TOOL) + ":" + os.environ["PATH"], "LC_ALL": "C.UTF-8"}


def output(*command, **more):
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, stdin=subprocess.DEVNULL, env=ENVIRONMENT, **more)
    assert done.returncode == 0, "%s: status %d\n%s%s" % (command, done.returncode, done.stdout, done.stderr)
    return done.stdout


def commands():
    found = re.findall(r"^  ([a-z]+) +\S", output(TOOL, "--help"), re.M)
    assert len(found) >= 7 and "completion" in found, found
    return found


def long_options(command):
    return re.findall(r"^  (?:-., |    )--([a-z-]+)", output(TOOL, command, "--help"), re.M)


def check_pages(names):
    lint = shutil.which("mandoc")
    for name in [None, *names]:
        page = output(TOOL, *([name] if name else []), "--option-table=man")
        title = "DDPCHECK" + ("-" + name.upper() if name else "")
        assert page.splitlines()[1].startswith(".TH %s 1 " % title), page[:200]
        plain = page.replace("\\-", "-").replace("\\fB", "").replace("\\fR", "")
        for option in long_options(name) if name else names:
            assert ("--" + option if name else "ddpcheck-" + option) in plain, "%s: no %s in\n%s" % (title, option, page)
        if lint:
            done = subprocess.run([lint, "-T", "lint", "-W", "warning"], input=page, capture_output=True, text=True, timeout=300)
            wrong = [line for line in done.stdout.splitlines() if "missing date" not in line]     # the page's only one is a version
            assert not wrong, "%s: %s" % (title, wrong)
    print("%d pages%s" % (len(names) + 1, "" if lint else "; not linted: no mandoc"))


def bash_offers(line):
    words = line.split(" ")
    script = ('source <("$1" completion bash) && COMP_WORDS=("${@:2}") COMP_CWORD=$(($# - 2)) && _ddpcheck && '
              'printf "%s\\n" "${COMPREPLY[@]}"')
    # readline's COMP_WORDBREAKS makes words of their own of "=".
    parts = [part for word in words for part in (re.split("(=)", word) if word.startswith("--") and "=" in word else [word])]
    parts = [part for i, part in enumerate(parts) if part or i + 1 == len(parts)]
    return output("bash", "-c", script, "bash", TOOL, *parts, cwd=FOLDER).split()


def fish_offers(line):
    text = output("fish", "--no-config", "-c", '%s completion fish | source; complete -C "%s"' % (TOOL, line), cwd=FOLDER)
    return [offer.split("\t")[0] for offer in text.splitlines()]


# At Tab the choices come as lines, not as a list, with a mark after them.
ZSH = r"""PS1= PS2= RPS1=; unsetopt prompt_sp prompt_cr; unset zle_bracketed_paste; autoload -Uz compinit
compinit -D -u; source <(%s completion zsh)
compadd() { [[ ${@[1,(i)(-|--)]} == *-(O|A|D)\ * ]] && { builtin compadd "$@"; return }
typeset -a hits; builtin compadd -A hits "$@"; (( $#hits )) && print -rl -- "" HIT:$^hits; builtin compadd "$@" }
offer() { zle list-choices; print; print -r -- OFFER''ED }; zle -N offer; bindkey '^I' offer; print -r -- REA''DY
"""


class Zsh:
    """An interactive zsh in a terminal of its own."""

    def __init__(self):
        pid, self.terminal = pty.fork()
        if pid == 0:
            os.chdir(FOLDER)
            os.execvpe("zsh", ["zsh", "-f", "-i"], {**ENVIRONMENT, "TERM": "vt100", "COLUMNS": "200", "LINES": "100"})
        fcntl.ioctl(self.terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 100, 200, 0, 0))
        os.write(self.terminal, (ZSH % TOOL).encode())
        self.read_until("READY")

    def read_until(self, mark):
        text = ""
        end = time.monotonic() + 300
        while mark not in text:
            ready, _, _ = select.select([self.terminal], [], [], max(0, end - time.monotonic()))
            assert ready, "zsh: no %s in 300 s; it said: %r" % (mark, text)
            text += os.read(self.terminal, 65536).decode(errors="replace")
        return text

    def offers(self, line):
        os.write(self.terminal, b"\x15" + line.encode() + b"\t")
        text = self.read_until("OFFERED")
        return re.findall(r"HIT:([A-Za-z0-9_./-]+)", text)


# A line, what is offered among others, what is not.
OFFERS = (
    ("ddpcheck re", ["report"], ["run", "explain"]),
    ("ddpcheck run --em", ["--emulate"], ["--timeout"]),
    ("ddpcheck report --j", ["--json"], ["--emulate"]),
    ("ddpcheck run --on-finding ", ["warn", "abort"], ["--emulate"]),
    ("ddpcheck report ", ["trace/"], []),
    ("ddpcheck run --output ", ["trace/"], ["file"]),
    ("ddpcheck explain DC20", ["DC201", "DC202"], ["DC101"]),
    ("ddpcheck completion ", ["bash", "zsh", "fish"], []),
    ("ddpcheck run -- ddpch", ["ddpcheck"], ["--emulate"]),
)


def check_shell(name, offers, lines):
    if not shutil.which(name):
        print("%s: not on this machine, left out" % name)
        return
    for line, wanted, unwanted in lines:
        got = [offer.rstrip("/") for offer in offers(line)]
        missing = [word for word in wanted if word.rstrip("/") not in got]
        wrong = [word for word in unwanted if word in got]
        assert not missing and not wrong, "%s: %s[Tab]: not offered: %s; wrongly offered: %s; all: %s" % (
            name, line, missing, wrong, got[:60])
    print("%s: %d lines" % (name, len(lines)))


def main():
    names = commands()
    check_pages(names)
    every = tuple(("ddpcheck %s --" % name, ["--" + option for option in long_options(name)], []) for name in names)
    check_shell("bash", bash_offers, OFFERS + every + (("ddpcheck run --on-finding=a", ["abort"], ["warn"]),))
    check_shell("fish", fish_offers, OFFERS + every)
    check_shell("zsh", Zsh().offers if shutil.which("zsh") else None, OFFERS + every)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="ddpcheck-tables-") as FOLDER:
        os.mkdir(os.path.join(FOLDER, "trace"))
        open(os.path.join(FOLDER, "file"), "w").close()
        main()
