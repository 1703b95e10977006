"""What people read of a C++ program's call stacks: demangled functions, its own line first and whole, on every surface."""

import json
import os
import re
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
BUILD = os.path.abspath(sys.argv[1])
TOOL, JOB = os.path.join(BUILD, "bin", "ddpcheck"), os.path.join(BUILD, "tests", "cxx_job")
STEP = "training::Trainer<...>::average"
SYMBOL = "_ZN8training7TrainerIfNS_7OptionsEE7averageEv"


def marked(name):
    with open(os.path.join(HERE, "job.cpp")) as file:
        return next(number for number, line in enumerate(file, 1) if "// mark: " + name in line)


def call(folder, *arguments, status=None, **environment):
    done = subprocess.run([TOOL, *arguments], cwd=folder, capture_output=True, text=True, timeout=200,
                          env={**os.environ, "COLUMNS": "80", "LC_ALL": "C.UTF-8", **environment})
    assert status in (None, done.returncode), (arguments, done)
    return done.stdout + (done.stderr if arguments[0] == "run" else "")


def check_hang(folder):
    printed = call(folder, "run", "--emulate", "2", "--hang-after", "2", "--timeout", "6", "-o", "trace", "--", JOB)
    here = "job.cpp:%d" % marked("average")
    assert here in printed.split("\n")[0], printed
    findings = [json.loads(line) for line in call(folder, "report", "--json", "trace").splitlines()]
    finding = next(line for line in findings if line.get("code") == "DC201")
    frames = next(side["frames"] for side in finding["sides"] if side["ranks"] == "0")
    assert {"function": STEP, "symbol": SYMBOL} in [{key: frame[key] for key in ("function", "symbol")} for frame in frames], frames
    assert [(frame["function"], frame["line"]) for frame in frames] == [
        (STEP, marked("average")), ("training::Trainer<...>::step()::{lambda()#1}::operator()", marked("lambda")),
        ("training::Trainer<...>::step", marked("hook")), ("training::run_rank", marked("last step")), ("main", marked("main"))], frames

    surfaces = {
        "report": call(folder, "report", "trace"),
        "report --verbose": call(folder, "report", "--verbose", "trace"),
        "tui": call(folder, "tui", "--once", "trace"),
        "tui findings": call(folder, "tui", "--once", "--view", "findings", "trace"),
        "html": call(folder, "export", "-f", "html", "trace"),
        "github": call(folder, "export", "-f", "github", "trace"),
    }
    for name, text in surfaces.items():
        assert "DC201" in text, "%s: %s" % (name, text)
        assert "_ZN" not in text, "%s has mangled names:\n%s" % (name, text)
    for name in "report", "report --verbose":           # the line of the program, whole, as the first frame
        assert re.search(r"average\(\) +\S*%s\b" % re.escape(here), surfaces[name]), surfaces[name]
    assert here in surfaces["tui"] and here in surfaces["html"].replace("<wbr>", ""), surfaces["tui"]
    sarif = json.loads(call(folder, "export", "-f", "sarif", "trace"))
    places = [place for result in sarif["runs"][0]["results"] for location in result["locations"] + result["relatedLocations"]
              for place in location.get("logicalLocations", [])]
    assert {"name": STEP, "kind": "function", "decoratedName": SYMBOL} in places, places
    for name in "training::*", SYMBOL:                  # a suppression may name either
        with open(os.path.join(folder, "known"), "w") as file:
            file.write("DC201:func=%s\n" % name)
        kept = call(folder, "report", "--suppressions", "known", "trace")
        assert "1 finding suppressed (known:1)" in kept, kept
    print(surfaces["report"])


def check_exception(folder):
    """A destructor ended the communicator while an exception unwound the stack."""
    call(folder, "run", "--emulate", "2", "--hang-after", "2", "--timeout", "4", "-o", "thrown", "--", JOB, JOB_THROWS="1")
    findings = [json.loads(line) for line in call(folder, "report", "--json", "thrown").splitlines()]
    finding = next(line for line in findings if line.get("code") == "DC205")
    assert [(side["ranks"], side["call"]) for side in finding["sides"]][1:] == [
        ("1", "left the communicator after an exception (C++)")], finding


def check_uncaught(folder):
    """std::terminate calls abort(): the line that threw, and the type, demangled."""
    call(folder, "run", "--emulate", "2", "--hang-after", "2", "--timeout", "4", "-o", "uncaught", "--", JOB, JOB_THROWS="2")
    printed = call(folder, "report", "uncaught")
    assert "uncaught C++ exception std::runtime_error" in printed, printed
    assert "job.cpp:%d" % marked("throw") in printed, printed


def check_twin(folder):
    call(folder, "run", "--emulate", "2", "-o", "twin", "--", JOB, status=0, JOB_TWIN="1")
    call(folder, "report", "twin", status=0)


with tempfile.TemporaryDirectory(prefix="ddpcheck-cxx-") as folder:
    check_hang(folder)
    check_uncaught(folder)
    check_exception(folder)
    check_twin(folder)
