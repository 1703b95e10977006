"""The shim on the emulated CUDA and NCCL: four ranks, every collective, groups, splits; then a rank that is missing.

test_emulated.py BUILD EMULATOR-LIBRARIES"""

import os
import signal
import subprocess
import sys
import time

from watch import DUMP, PROGRAMS, Run, equal, of

NOT_READY = 3       # of ring_dump: killed before the file's header was complete
EMULATOR = os.path.abspath(sys.argv[2])
RANKS = os.path.join(PROGRAMS, "interpose_ranks")
OPERATIONS = ["ncclAllReduce", "ncclBroadcast", "ncclReduce", "ncclAllGather", "ncclReduceScatter", "ncclAlltoAll",
              "ncclGather", "ncclScatter"]


def watch(*program, **environment):
    return Run(*program, LD_LIBRARY_PATH=EMULATOR, DDPCHECK_EMU_DEVICES="4", **environment)


def by_rank(run):
    """The records of each process that has a member, by the rank of its first."""
    ranks = {}
    for file in run.files():
        records = run.records(file)
        members = of(records, "notice_member")
        if members:
            ranks[members[0]["comm.rank"]] = records
    return ranks


def test_four_ranks():
    with watch(RANKS).ok() as run:
        equal(len(run.files()), 5, "ring files: four ranks, and the launcher, which made the unique id")
        ranks = by_rank(run)
        equal(sorted(ranks), [0, 1, 2, 3], "ranks")
        comms = {tuple(dict.fromkeys(r["op.comm"] for r in records if "op.comm" in r)) for records in ranks.values()}
        equal((len(comms), len({pair[0] for pair in comms}), len({pair[1] for pair in comms})), (2, 1, 2),
              "one communicator, and its two halves")
        unique = [of(run.records(file), "ncclGetUniqueId", "LEAVE") for file in run.files()]
        equal([found[0]["leave.comm"] for found in unique if found], [list(comms)[0][0]], "id of the launcher's unique id")
        for rank, records in ranks.items():
            check_rank(rank, records)
        assert len({r["comm.gpu"] for records in ranks.values() for r in of(records, "notice_member")}) == 4, "four GPUs"


def check_rank(rank, records):
    operations = [r for r in records if "op.number" in r]
    equal([r["api"] for r in operations], OPERATIONS + ["ncclSend", "ncclRecv", "ncclAllReduce"], "operations")
    equal([r["op.number"] for r in operations], list(range(8)) + [0, 0, 0], "numbers")
    equal([r["op.launch"] for r in operations], list(range(1, 9)) + [9, 9, 1], "launches")
    equal((operations[8]["op.root"], operations[9]["op.root"]), ((rank + 1) % 4, (rank + 3) % 4), "peers")
    equal({r["device"] for r in operations}, {rank}, "device")
    equal([(r["started"], r["done"]) for r in of(records, "slot")], [(9, 9), (1, 1)], "progress")
    equal({(r["buffer.device"], r["buffer.type"]) for r in of(records, "notice_buffer")}, {(rank, 3)}, "buffers")
    equal([(r["comm.rank"], r["comm.nranks"]) for r in of(records, "notice_member")], [(rank, 4), (rank % 2, 2)], "members")
    equal([r["result"] for r in records if r.get("phase") == "LEAVE" and r["result"]], [], "errors")
    equal([r["end.value"] for r in of(records, "notice_exit")], [0], "exit")


def test_a_killed_job_leaves_its_records():
    with watch("true") as run:
        process = subprocess.Popen([RANKS], env=run.environment, start_new_session=True,
                                   stdout=subprocess.DEVNULL)
        deadline = time.monotonic() + 30
        while len(run.files()) < 5 and time.monotonic() < deadline:
            time.sleep(0.001)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        for file in run.files():
            done = subprocess.run([DUMP, file], capture_output=True, text=True, timeout=60)
            assert done.returncode in (0, NOT_READY), done.stderr


if __name__ == "__main__":
    for test in (test_four_ranks, test_a_killed_job_leaves_its_records):
        test()
        print("passed", test.__name__)
