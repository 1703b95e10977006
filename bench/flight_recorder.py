"""Writes the Flight Recorder dumps of a large job, in the layout that PyTorch 2.10 writes (tests/data/flight_recorder).

flight_recorder.py FOLDER RANKS ENTRIES: one file for each rank, ENTRIES of them in each. Three of four collectives are
on the group of all ranks, the fourth on that of the rank's node (8 ranks). One rank, RANKS / 2 + 5, never makes the last
collective of the group of all, in which the others wait."""

import os
import pickle
import sys

NODE = 8
NANOSECOND_START = 1795267350000000000
FRAMES = [[{"name": name, "filename": file, "line": line} for name, file, line in
           (("all_reduce", "/opt/torch/distributed/distributed_c10d.py", 3007), ("wrapper", "/opt/torch/distributed/c10d_logger.py", 83),
            (call, "/home/me/train/model.py", 100 + number), ("train_step", "/home/me/train/train.py", 40 + number),
            ("main", "/home/me/train/train.py", 97), ("<module>", "/home/me/train/train.py", 120))]
          for number, call in enumerate(("reduce_gradients", "reduce_loss", "sum_tokens", "gather_activations"))]
KINDS = (("nccl:all_reduce", [[1048576]], [[1048576]]), ("nccl:all_reduce", [[1]], [[1]]), ("nccl:all_reduce", [[64]], [[64]]),
         ("nccl:all_gather", [[4096]], [[NODE, 4096]]))


def entry(number, group, sequence, kind, is_last, jitter):
    name, inputs, outputs = KINDS[kind]
    made = NANOSECOND_START + number * 1000000 + jitter
    return {"frames": FRAMES[kind], "record_id": number, "pg_id": group[0], "process_group": group[1:], "thread_name": "pt_autograd_0",
            "thread_id": "140228837276544", "collective_seq_id": sequence, "p2p_seq_id": 0, "op_id": sequence, "profiling_name": name,
            "time_created_ns": made, "input_sizes": inputs, "input_dtypes": ["Float"], "output_sizes": outputs,
            "output_dtypes": ["Float"], "state": "scheduled" if is_last else "completed", "time_discovered_started_ns": None,
            "time_discovered_completed_ns": None if is_last else made + 900000, "retired": not is_last, "timeout_ms": 600000,
            "is_p2p": False}


def dump(rank, ranks, entries, odd):
    node = rank // NODE
    groups = ((0, "0", "default_pg"), (1, str(1 + node), "node"))
    members = (range(ranks), range(node * NODE, min(ranks, (node + 1) * NODE)))
    # The last entry of all is one of the group of all ranks.
    kinds = [(number + 4 - entries % 4 + 1) % 4 for number in range(entries)]
    made, sequences = [], [0, 0]
    for number, kind in enumerate(kinds):
        which = kind == 3
        sequences[which] += 1
        if number < entries - 1 or rank != odd:
            made.append(entry(number, groups[which], sequences[which], kind, number == entries - 1, rank * 37 % 1000))
    enqueued = [sequences[0] - (rank == odd), sequences[1]]
    return {"version": "2.10", "comm_lib_version": "2.27.5",
            "pg_config": {group[1]: {"name": group[1], "desc": group[2], "ranks": str(list(ranks_of))}
                          for group, ranks_of in zip(groups, members)},
            "pg_status": {str(group[0]): {"last_enqueued_collective": enqueued[i], "last_started_collective": -1,
                                          "last_completed_collective": sequences[i] - (i == 0)} for i, group in enumerate(groups)},
            "entries": made}


def main():
    folder, ranks, entries = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    os.makedirs(folder)
    later = NANOSECOND_START + entries * 1000000 + 600 * 10**9      # when the watchdog gave up
    for rank in range(ranks):
        path = os.path.join(folder, "nccl_trace_rank_%d" % rank)
        with open(path, "wb") as file:
            pickle.dump(dump(rank, ranks, entries, ranks // 2 + 5), file, protocol=2)
        os.utime(path, ns=(later, later))
    print(ranks // 2 + 5)


if __name__ == "__main__":
    main()
