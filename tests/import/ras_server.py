"""Speaks RAS's protocol as NCCL does (src/ras/client_support.cc), for one job whose state the test sets."""

import json
import socket
import threading


class RasServer:
    """state: what STATUS answers, a dict or text. json: NCCL 2.28.7 and later. diagnostics: what DIAGNOSTICS does, NCCL 2.31 and later."""

    def __init__(self, state, knows_json=True, diagnostics=None):
        self.state, self.knows_json, self.diagnostics, self.asked = state, knows_json, diagnostics, 0
        self.listener = None
        self.open()

    def open(self, port=0):
        self.listener = socket.socket()
        self.listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.listener.bind(("127.0.0.1", port))
        self.listener.listen()
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.serve, args=(self.listener,), daemon=True).start()

    @property
    def address(self):
        return "127.0.0.1:%d" % self.port

    def close(self):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()

    def serve(self, listener):
        while True:
            try:
                client, _ = listener.accept()
            except OSError:
                return
            with client:
                try:
                    self.talk(client)
                except OSError:
                    pass

    def talk(self, client):
        wants_json = False
        for line in client.makefile("r", encoding="utf-8"):
            command = line.strip().lower()
            if command.startswith("client protocol "):
                client.sendall(b"SERVER PROTOCOL 2\n")
            elif command.startswith("timeout "):
                client.sendall(b"OK\n")
            elif command.startswith("set format ") and self.knows_json:
                wants_json = command.endswith(" json")
                client.sendall(b"OK\n")
            elif command in ("status", "verbose status"):
                self.asked += 1
                text = json.dumps(self.state, indent=2) + "\n" if wants_json and isinstance(self.state, dict) else str(self.state)
                half = len(text) // 2
                client.sendall(text[:half].encode())
                client.sendall(text[half:].encode())
                return
            elif command == "diagnostics" and self.diagnostics:
                client.sendall(self.diagnostics.encode())
                return
            else:
                client.sendall(("ERROR: Unknown command %s\n" % line.strip()).encode())


def job(counts, missing=(), size=None):
    """RAS's document of one communicator: counts[rank] = AllReduce calls."""
    ranks = [{"rank": rank, "host": "10.0.0.1", "pid": 1000 + rank, "cuda_dev": rank, "nvml_dev": rank,
              "status": {"init_state": 0, "async_error": 0, "finalize_called": False, "destroy_flag": False, "abort_flag": False},
              "collective_counts": {"Broadcast": 1, "Reduce": 0, "AllGather": 0, "ReduceScatter": 0, "AllReduce": count}}
             for rank, count in enumerate(counts) if rank not in missing]
    return {"nccl_version": "2.28.9", "cuda_runtime_version": 13000, "cuda_driver_version": 13000, "timestamp": "2026-11-21 14:03:22",
            "communicators_count": 1,
            "communicators": [{"hash": "0xae94423cfbb2ef4a", "secondary_hash": "0x1:0x2", "size": size or len(counts),
                               "ranks_count": len(ranks), "missing_ranks_count": len(missing), "ranks": ranks,
                               "missing_ranks": [{"rank": rank, "host": "10.0.0.1", "pid": 1000 + rank, "cuda_dev": rank, "nvml_dev": rank,
                                                  "status": {"unresponsive": True, "considered_dead": True}} for rank in missing]}],
            "ras": {"collection_time_sec": 0.001, "timeouts_count": 0}}
