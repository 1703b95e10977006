"""The shim on the emulated CUDA and NCCL: four ranks, every collective, groups, splits; then a rank that is missing.

test_emulated.py BUILD EMULATOR-LIBRARIES"""

import os
import re
import signal
import subprocess
import sys
import tempfile
import time

from watch import BUILD, DUMP, NO_SLOT, PROGRAMS, SHIM, Run, equal, of

NOT_READY = 3       # of ring_dump: killed before the file's header was complete
EMULATOR = os.path.abspath(sys.argv[2])
TWINS = os.path.join(os.path.dirname(PROGRAMS), "emu_test_twins.so")
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


ELEMENTS = 4 * 256      # bytes of a count of job_ranks


def expected_hashes(name, rank):
    """(what: bytes) for one operation of job_ranks on this rank; what is 0 sent before, 1 sent after, 2 left behind."""
    one, all_ = ELEMENTS, 4 * ELEMENTS
    sends = {"ncclAllReduce": one, "ncclBroadcast": one if rank == 0 else 0, "ncclReduce": one, "ncclAllGather": one,
             "ncclReduceScatter": all_, "ncclAlltoAll": all_, "ncclGather": one, "ncclScatter": all_ if rank == 1 else 0,
             "ncclSend": one, "ncclRecv": 0}[name]
    leaves = {"ncclAllReduce": one, "ncclBroadcast": one, "ncclAllGather": all_}.get(name, 0)
    return {**({0: sends, 1: sends} if sends else {}), **({2: leaves} if leaves else {})}


def test_hashes():
    with watch(RANKS, DDPCHECK_HASH="1").ok() as run:
        check_hashes(run)


def test_hashes_of_an_older_device():
    """No machine code is for it: the driver compiles the kernel's PTX text."""
    with watch(RANKS, DDPCHECK_HASH="1", DDPCHECK_EMU_ARCHITECTURE="7.0") as run:
        equal(run.status, 0, "exit status")
        check_hashes(run)


def check_hashes(run):
    zeros = {}
    for rank, records in by_rank(run).items():
        check_rank(rank, records)
        equal([r["hashing.entries"] for r in of(records, "notice_hashing")], [2048], "hashing")
        hashes = of(records, "hash")
        for op in [r for r in records if "op.number" in r][:-1]:
            mine = {h["what"]: h for h in hashes if h["serial"] == op["serial"]}
            equal({what: h["bytes"] for what, h in mine.items()}, expected_hashes(op["api"], rank), "%s on rank %d" % (op["api"], rank))
            for what, h in mine.items():
                equal((h["comm"], h["number"], h["rank"], h["operation"], h["flags"], h["nans"], h["infs"]),
                      (op["op.comm"], op["op.number"], rank, op["api"], 1, 0, 0), "hash of %s" % op["api"])
                equal(h["expects"], sum(1 << w for w in mine), "what is expected of %s" % op["api"])
                zeros.setdefault(h["bytes"], set()).add(h["hash"])
    equal({bytes_: len(values) for bytes_, values in zeros.items()}, {ELEMENTS: 1, 4 * ELEMENTS: 1},
          "equal bytes, equal hashes on all ranks; other lengths, other hashes")


def test_hashes_of_two_threads():
    """While one thread still prepares the ring file for the kernel, the other's operations wait for it."""
    slow = os.path.join(PROGRAMS, "libinterpose_slow_register.so")
    with watch(os.path.join(PROGRAMS, "interpose_threads"), DDPCHECK_HASH="1", LD_PRELOAD="%s:%s" % (SHIM, slow)).ok() as run:
        hashes = of(run.records(), "hash")
        equal(sorted((h["rank"], h["what"]) for h in hashes), [(0, 0), (0, 2), (1, 0), (1, 2)], "hashes of both ranks")


def test_hashes_find_no_room():
    """Nobody collects: the pool is full after a while, the rest is counted, and the job goes on."""
    with watch(RANKS, "2", "150", DDPCHECK_HASH="1").ok() as run:
        for records in by_rank(run).values():
            made, lost = len(of(records, "hash")), of(records, "lost")[0]["hashes"]
            assert 1500 < made <= 2048 and lost > 500, "%d hashes made, %d lost" % (made, lost)


def test_many_devices_with_much_memory():
    program = ("import ctypes; cuda = ctypes.CDLL('libcudart.so.13'); count = ctypes.c_int(); free, total = ctypes.c_size_t(), "
               "ctypes.c_size_t(); cuda.cudaGetDeviceCount(ctypes.byref(count)); status = cuda.cudaSetDevice(count.value - 1); "
               "cuda.cudaMemGetInfo(ctypes.byref(free), ctypes.byref(total)); print(status, count.value, total.value >> 30)")
    for size, gigabytes in (("3g", 3), ("16384M", 16), ("", 8), ("12X", 8)):
        with Run(sys.executable, "-c", program, preload=False, LD_LIBRARY_PATH=EMULATOR, DDPCHECK_EMU_DEVICES="256",
                 DDPCHECK_EMU_MEMORY=size) as run:
            equal((run.status, run.out), (0, "0 256 %d\n" % gigabytes), size)
            equal(run.err.count("is not a size"), int(size == "12X"), run.err)


def test_a_killed_job_leaves_its_records():
    with watch("true") as run:
        process = subprocess.Popen([RANKS], env=run.environment, start_new_session=True,
                                   stdout=subprocess.DEVNULL)
        deadline = time.monotonic() + 300
        while len(run.files()) < 5 and time.monotonic() < deadline:
            time.sleep(0.001)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        for file in run.files():
            done = subprocess.run([DUMP, file], capture_output=True, text=True, timeout=300)
            assert done.returncode in (0, NOT_READY), done.stderr


def capture(mode, select="all"):
    """The records of job_capture in this mode."""
    with watch(os.path.join(PROGRAMS, "interpose_capture"), mode, DDPCHECK_EMU_TWINS=TWINS, DDPCHECK_CUDA=select).ok() as run:
        return run.records()


CAPTURE, REPLAY, LATE, DRIVER = 4, 16, 32, 64


def test_graphs():
    records = capture("graph")
    reduces = of(records, "ncclAllReduce", "ENTER")
    equal([(r["op.number"], r["flags"] & CAPTURE, r["flags"] & REPLAY) for r in reduces],
          [(0, 0, 0), (1, CAPTURE, 0), (1, 0, REPLAY), (2, 0, REPLAY), (3, 0, 0)], "numbers of captured and replayed operations")
    equal([(r["op.number"], r["flags"] & (CAPTURE | REPLAY)) for r in of(records, "ncclSend", "ENTER")],
          [(0, CAPTURE), (0, REPLAY), (1, REPLAY)], "sends")
    launches = of(records, "cudaGraphLaunch")
    main = launches[0]["stream"]
    equal([r["stream"] for r in launches], [main] * 2, "launches")
    equal([r["stream"] == main for r in reduces], [True, False, True, True, True], "replayed on the launch's stream")
    equal([r["op.launch"] for r in reduces], [1, 0, 2, 3, 4], "progress")
    equal([(r["started"], r["done"]) for r in of(records, "slot")], [(4, 4)], "progress")
    starts = [r["serial"] for r in of(records, "ncclGroupStart")]
    equal([r["op.group"] for r in reduces], [0, 0, starts[1], starts[2], 0], "a launch is a group")
    equal([r["flags"] & CAPTURE for r in of(records, "cudaStreamWaitEvent")], [CAPTURE] * 2, "a stream joins, and is joined")
    equal([r["flags"] & CAPTURE for r in of(records, "cudaMemsetAsync")], [CAPTURE], "captured memset")
    ended, clone = of(records, "cudaStreamEndCapture")[0], of(records, "cudaGraphClone")[0]
    made = of(records, "cudaGraphInstantiate")[0]
    equal((ended["graph.graph"], clone["graph.exec"], made["graph.exec"]),
          (clone["graph.graph"], made["graph.graph"], launches[0]["graph.exec"]), "graph, copy, instance")
    equal(of(records, "notice_blind"), [], "all of it was seen")


def test_driver():
    records = capture("driver")
    launches, again = of(records, "cudaLaunchKernel")[:2], of(records, "cudaLaunchKernel")[2:]
    equal([r["flags"] & DRIVER for r in launches], [DRIVER] * 2, "launches are the driver's")
    equal([r["launch.count"] for r in again], [1, 2] * 25, "kernels of modules that were loaded in the place of others")
    memory = [r for r in of(records, "cudaMalloc") if r["flags"] & DRIVER]
    equal(len(memory), 1, "cuMemAlloc")
    name = [r["text"] for r in of(records, "notice_string") if r["string.id"] == launches[0]["launch.function"]]
    equal(name, ["_Z10add_scaledfPKfPfi"], "name")
    for launch in launches:
        equal((launch["launch.count"], launch["launch.written"], launch["launch.inferred"], launch["launch.known"]),
              (2, 0b10, 0, 0), "pointers")
        equal(launch["launch.pointer[1]"], memory[0]["memory.pointer"], "pointer")
    created = [r for r in of(records, "cudaStreamCreateWithFlags") if r["flags"] & DRIVER]
    equal([r["event.flags"] for r in created], [1], "stream")
    equal([(r["phase"], r["stream"]) for r in of(records, "cudaStreamSynchronize") if r["flags"] & DRIVER][0],
          ("ENTER", created[0]["stream"]), "wait")
    equal([(r.get("wait.bytes"), r.get("wait.kind")) for r in of(records, "cudaMemcpy", "ENTER")], [(16, 2)], "copy")
    equal([r["wait.dst"] for r in of(records, "cudaFree", "ENTER")], [memory[0]["memory.pointer"]], "free")


def test_structs_are_searched():
    """A kernel that nothing can run has the layout that its device code declares, so that pointers in its structs are found."""
    with watch(os.path.join(PROGRAMS, "interpose_capture"), "struct", DDPCHECK_CUDA="all") as run:
        equal((run.status, run.out), (0, "ok\n"), run.err)
        records = run.records()
    launch, = of(records, "cudaLaunchKernel")
    memory = of(records, "cudaMalloc")[-1]["memory.pointer"]
    equal([launch["launch.pointer[%d]" % i] for i in range(launch["launch.count"])], [memory, memory + 64, memory + 128], "pointers")
    left = of(records, "ncclAllReduce", "LEAVE")[-2:]
    equal([(r["leave.kernels"], r["leave.threads"]) for r in left], [(1, 3 * 2 * 4), (0, 0)], "an operation records what was launched before it")
    # The struct's are inferred and may be written; the name says of the last that it is only read.
    equal((launch["launch.inferred"], launch["launch.written"], launch["launch.known"]), (0b011, 0b011, 0), "what is known of them")


def test_what_was_there_before():
    records = capture("before")
    flags = {r["stream"]: r["event.flags"] for r in of(records, "notice_stream")}
    equal(sorted(flags.values()), [0, 1], "flags of streams made before the shim woke, once each")
    equal(flags[of(records, "cudaMemsetAsync")[0]["stream"]], 0, "the blocking stream")
    assert of(records, "notice_stream")[1]["serial"] < of(records, "cudaMemsetAsync")[0]["serial"], "told first"
    equal(len(of(records, "notice_blind")), 1, "a graph made before, once")


def test_host_functions():
    records = capture("host")
    for api in ("cudaLaunchHostFunc", "cudaStreamAddCallback"):
        launch = of(records, api)[0]
        equal(launch["launch.known"] & 2, 2, api + " tells when it runs")
        told = [(r["api"], r["stream"]) for r in records if r.get("leave.enter") == launch["serial"]]
        equal(told, [("notice_host_function", launch["stream"]), ("notice_host_function_end", launch["stream"])], api)
    threads = {r["thread"] for r in of(records, "notice_host_function")}
    assert threads.isdisjoint({of(records, "cudaLaunchHostFunc")[0]["thread"]}), "on another thread"


def test_captures_are_not_broken_by_queries():
    """A driver without stream writes: events are queried instead, but never in a way that a capture forbids."""
    with watch(os.path.join(PROGRAMS, "interpose_capture"), "queries", DDPCHECK_EMU_STREAM_WRITES="0").ok() as run:
        records = run.records()
        equal([(r["started"], r["done"]) for r in of(records, "slot")], [(3, 3)], "progress")
        equal(len(of(records, "notice_blind")), 1, "that events are queried is recorded, once")


def test_events_that_could_not_be_recorded():
    """All events are in use, or another stream is captured: a later call records what is left, and the end is known."""
    with watch(os.path.join(PROGRAMS, "interpose_capture"), "late", DDPCHECK_PROGRESS="events").ok() as run:
        equal([(r["started"], r["done"]) for r in of(run.records(), "slot")], [(151, 151)], "progress")


def test_first_use_of_the_hash_kernel_waits_for_nothing():
    """Where CUDA loads lazily, what first uses a kernel waits for the device: here for operations behind a closed gate."""
    with watch(os.path.join(PROGRAMS, "interpose_capture"), "late", DDPCHECK_HASH="1", DDPCHECK_EMU_LAZY_LOADING="1",
               timeout=300).ok() as run:
        assert len(of(run.records(), "hash")) > 150, "hashes"


def rings_on_disk():
    """A directory for rings that is not in memory, or None."""
    place = tempfile.mkdtemp(dir=BUILD, prefix="rings-")
    kind = subprocess.run(["stat", "-f", "-c", "%T", place], check=True, capture_output=True, text=True).stdout.strip()
    if kind not in ("tmpfs", "hugetlbfs"):
        return place
    os.rmdir(place)
    print("the build is in memory: rings on a disk are not tested")
    return None


def words_of(run):
    """The files of shared memory that the ring files name; they are removed here, as the collector would."""
    names = []
    for file in run.files():
        with open(file, "rb") as header:
            names += [name.decode("ascii") for name in re.findall(rb"ddpcheck-\d+-[0-9a-f]{16}\.words", header.read(4096))]
    for name in names:
        os.unlink("/dev/shm/" + name)
    return names


def test_words_beside_rings_on_a_disk():
    """Drivers do not pin files on a disk: what the GPU writes is in shared memory then."""
    place = rings_on_disk()
    if not place:
        return
    with watch(RANKS, rings=place, DDPCHECK_HASH="1").ok() as run:
        check_hashes(run)
        for records in by_rank(run).values():
            equal(of(records, "notice_blind"), [], "nothing is lost")
        equal(len(words_of(run)), len(run.files()), "files of words")


def test_full_shared_memory():
    """Without room for that, progress comes from events, payloads are not hashed, and both is said with what to do."""
    full = "%s:%s" % (SHIM, os.path.join(PROGRAMS, "libinterpose_full_shm.so"))
    place = rings_on_disk()
    if not place:
        return
    with watch(os.path.join(PROGRAMS, "interpose_capture"), "queries", rings=place, LD_PRELOAD=full).ok() as run:
        records = run.records()
        equal(words_of(run), [], "no file of words")
        equal([(r["started"], r["done"]) for r in of(records, "slot")], [(3, 3)], "progress")
        expect_said(records, ["how far the GPU got"])
    with watch(os.path.join(PROGRAMS, "interpose_capture"), "queries", rings=rings_on_disk(), LD_PRELOAD=full, DDPCHECK_HASH="1") as run:
        equal((run.status, run.out), (0, "ok\n"), "the program")
        assert "payloads are not hashed: the ring file is on a disk" in run.err, run.err
        expect_said(run.records(), ["how far the GPU got", "payloads (--hash)"])


def expect_said(records, beginnings):
    """Each notice of something unseen begins with one of these, and says what to do."""
    texts = {}
    for record in of(records, "notice_string"):     # a long one comes in pieces
        texts[record["string.id"]] = texts.get(record["string.id"], "") + record["text"]
    said = sorted(texts[r["range.text"]] for r in of(records, "notice_blind"))
    equal(len(said), len(beginnings), "notices")
    for text, beginning in zip(said, sorted(beginnings)):
        assert text.startswith(beginning) and "on a disk" in text and "/dev/shm" in text, text


def test_shapes():
    records = capture("shapes")
    box = of(records, "cudaMalloc3D")[0]
    pitch = box["memory.bytes"] // 12
    slices = of(records, "cudaMemcpy3DAsync")
    equal([(r["copy.dst"] - box["memory.pointer"], r["copy.bytes"], r["copy.height"], r["copy.dst_pitch"], r["copy.src_pitch"])
           for r in slices], [(4 + pitch * (1 + 4 * z), 4, 2, pitch, 4) for z in (1, 2)], "slices")
    memset = of(records, "cudaMemset2DAsync")[0]
    equal((memset["copy.bytes"], memset["copy.height"], memset["copy.dst_pitch"], memset["copy.src"]), (8, 3, pitch, 7), "memset")
    copy = of(records, "cudaMemcpy2D", "ENTER")[0]
    equal((copy["wait.bytes"], copy["wait.height"], copy["wait.dst_pitch"]), (12, 3, 4), "copy")


def test_nodes_added_by_hand():
    records = capture("nodes")
    graph = of(records, "cudaGraphInstantiate")[0]["graph.graph"]
    equal([(r["graph.graph"], r["result"]) for r in of(records, "cudaGraphAddNode")], [(graph, 0)] * 2, "nodes")
    equal((of(records, "cudaMemsetAsync"), of(records, "cudaMemcpyAsync")), ([], []), "what CUDA does inside of the calls")


def test_nodes_added_by_hand_with_edge_data():
    """By the name that CUDA 12's headers have for it."""
    records = of(capture("nodes12"), "cudaGraphAddNode")
    equal([r["result"] for r in records], [0, 0], "nodes")
    assert len({r["graph.graph"] for r in records}) == 1 and records[0]["graph.graph"], "one graph"


def test_captures_to_a_graph():
    """What is captured into a graph that exists is not work that was launched, least of all a conditional node's body."""
    records = capture("to-graph")
    equal([(r["copy.bytes"], r["flags"] & CAPTURE) for r in of(records, "cudaMemsetAsync")],
          [(30, CAPTURE), (31, CAPTURE), (32, CAPTURE), (33, 0)], "captured memsets")
    equal([(r["op.number"], r["flags"] & (CAPTURE | REPLAY)) for r in of(records, "ncclAllReduce", "ENTER")],
          [(0, CAPTURE), (0, CAPTURE), (0, REPLAY), (1, 0)], "collectives: captured, captured in the body, replayed, launched")
    begun, ended = of(records, "cudaStreamBeginCapture"), of(records, "cudaStreamEndCapture")
    equal([r["graph.graph"] for r in begun], [r["graph.graph"] for r in ended], "graphs")
    equal([bool(r["flags"] & DRIVER) for r in begun], [False, True, False], "the driver's call")


def test_pointers_are_looked_up_once_an_allocation():
    counter = os.path.join(PROGRAMS, "libinterpose_count_queries.so")
    with watch(os.path.join(PROGRAMS, "interpose_capture"), "pointers", DDPCHECK_CUDA="all",
               LD_PRELOAD="%s:%s" % (SHIM, counter)) as run:
        equal((run.status, run.out), (0, "ok\n"), run.err)
        memsets = of(run.records(), "cudaMemsetAsync")
        queries = [int(line.split()[1]) for line in run.err.splitlines() if line.startswith("queries ")]
        equal(len(memsets), 1000, "memsets")
        assert queries and 1 <= max(queries) < 10, "%s queries for 1,000 pointers" % queries


def test_progress_of_many_communicators():
    """There are 256 slots: those of communicators that ended are used again, and the launches count on."""
    records = capture("communicators")
    reduces = of(records, "ncclAllReduce", "ENTER")
    equal((len(reduces), [r for r in reduces if r["op.slot"] == NO_SLOT]), (301, []), "each operation has a slot")
    launches = {}
    for reduce in reduces:
        launches.setdefault(reduce["op.slot"], []).append(reduce["op.launch"])
    equal((len(launches), len(launches[0])), (256, 46), "slots, and operations of the one that is free again first")
    assert all(numbers == list(range(1, len(numbers) + 1)) for numbers in launches.values()), launches
    slots = of(records, "slot")
    equal([(r["started"], r["done"]) for r in slots], [(len(launches[i]),) * 2 for i in range(256)], "words of the slots")
    equal(of(records, "notice_blind"), [], "nothing is lost")


def test_progress_after_a_reset():
    records = capture("reset")
    equal([(r["started"], r["done"]) for r in of(records, "slot")], [(1, 1), (1, 1)], "words of both communicators")
    equal(of(records, "notice_blind"), [], "nothing is lost")


def copies(records):
    return [(r["copy.bytes"], r["flags"] & LATE) for r in records if r["api"] in ("cudaMemsetAsync", "cudaMemcpyAsync")]


def test_selection():
    records = capture("selection", "used")
    equal(sorted(copies(records)[:2]), [(13, LATE), (14, LATE)], "told late")
    equal(copies(records)[2:], [(15, 0), (16, 0)], "told at once")
    late = [r for r in records if r.get("flags", 0) & LATE]
    first = of(records, "ncclAllReduce", "ENTER")[0]
    allocations = [r["serial"] for r in of(records, "cudaMalloc")]
    for record in late:
        assert allocations[-2] < record["issued"] <= record["serial"] < first["serial"], "place of %s" % record
    equal([r["memory.pointer"] for r in of(records, "notice_unrecorded")], [], "nothing was forgotten")
    equal([bytes_ for bytes_, _ in copies(capture("selection", "all"))], [10, 11, 12, 13, 14, 15, 16, 17], "all")
    none = capture("selection", "none")
    equal((copies(none), [r["memory.bytes"] for r in of(none, "notice_unrecorded")]), ([], [-1, -1]), "none; again after an allocation")
    equal(len(of(none, "ncclAllReduce", "ENTER")), 2, "collectives")


def test_selection_keeps_order():
    records = capture("blocking", "used")
    equal(copies(records), [(20, 0), (22, 0), (23, 0)], "what orders other streams is told")
    made, markers = of(records, "cudaStreamCreate")[0], of(records, "cudaLaunchKernel")
    equal([(r["stream"], r["launch.count"], r["serial"] > made["serial"]) for r in markers], [(0, 0, True)],
          "a place on the default stream for what was kept")


if __name__ == "__main__":
    for test in (test_four_ranks, test_hashes, test_hashes_of_an_older_device, test_hashes_of_two_threads, test_hashes_find_no_room, test_a_killed_job_leaves_its_records, test_graphs,
                 test_driver, test_what_was_there_before, test_host_functions, test_captures_are_not_broken_by_queries,
                 test_events_that_could_not_be_recorded, test_first_use_of_the_hash_kernel_waits_for_nothing,
                 test_words_beside_rings_on_a_disk, test_full_shared_memory, test_structs_are_searched, test_shapes,
                 test_progress_of_many_communicators, test_progress_after_a_reset,
                 test_nodes_added_by_hand, test_nodes_added_by_hand_with_edge_data, test_captures_to_a_graph,
                 test_pointers_are_looked_up_once_an_allocation, test_selection,
                 test_selection_keeps_order):
        test()
        print("passed", test.__name__)
