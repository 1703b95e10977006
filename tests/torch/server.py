"""Imports PyTorch once, then forks the ranks of one job after the other.

server.py MODULE: imports it, then reads lines of JSON {"program", "case", "ranks", "environment", "folder"} and starts each as
a process group of its own, whose id it prints; what the ranks print goes to FOLDER/output.log, and their exit statuses, when
all have ended, to FOLDER/statuses. A launcher that ends the others when one rank fails would hide who waited: this one does not."""

import functools
import importlib
import json
import os
import socket
import sys
import time

import job      # with torch
import torch._dynamo  # noqa: F401  (what an optimizer's first step imports: once here, not in each rank)


def rank_main(order, rank, port):
    os.environ.update(order["environment"], RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE=str(order["ranks"]),
                      MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    program = importlib.import_module(order["program"])
    sys.argv = [order["program"] + ".py", *order["case"].split()]
    if order["case"] in job.ENDINGS:
        program.main()
        return
    try:
        program.main()
        sys.stdout.flush()
        os._exit(0)
    except BaseException as error:
        print("rank %d: %s: %s" % (rank, type(error).__name__, str(error).splitlines()[0]), file=sys.stderr, flush=True)
        os._exit(1)


def launch(order):
    """In a process of its own. Returns in each rank, with what it is to run."""
    os.setpgid(0, 0)
    log = os.open(os.path.join(order["folder"], "output.log"), os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(log, 1)
    os.dup2(log, 2)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    ranks = {}
    for rank in range(order["ranks"]):
        child = os.fork()
        if child == 0:
            return functools.partial(rank_main, order, rank, port)
        ranks[child] = rank
    statuses = [0] * order["ranks"]
    for _ in ranks:
        child, status = os.wait()
        statuses[ranks[child]] = os.waitstatus_to_exitcode(status)
    path = os.path.join(order["folder"], "statuses")
    with open(path + ".made", "w") as file:
        json.dump(statuses, file)
    os.rename(path + ".made", path)
    time.sleep(3600)            # a leader that is gone could be another's process group by now
    os._exit(1)


def main():
    importlib.import_module(sys.argv[1])
    for line in sys.stdin:
        order = json.loads(line)
        leader = os.fork()
        if leader == 0:
            return launch(order)
        print(leader, flush=True)
    return lambda: None


if __name__ == "__main__":
    run_rank = main()
    run_rank()      # as a script runs: an exception ends the interpreter in Python's own way
