"""Made-up timelines of a small job: each rank computes, then all reduce. A collective ends on all of its ranks at once."""

import csv
import io
import json

COLUMNS = ("rank", "host", "group", "operation", "number", "iteration", "start", "duration", "issued", "bytes", "peer")
KERNELS = ("attention", "gemm", "layer_norm")
COMPUTE, TRANSFER, LAUNCH = 0.010, 0.001, 0.0002


class Timeline:
    """Rows of `ranks` ranks in groups of `width` (all of them by default). The functions say what differs, by rank and iteration."""

    def __init__(self, ranks=4, width=None, iterations=60, slower=lambda rank, i: 1, kernel=lambda rank, i, name: 1,
                 late=lambda rank, i: 0, transfer=lambda group, i: 1):
        self.rows = []
        width = width or ranks
        clock = [0.0] * ranks
        for i in range(iterations):
            for group in range(0, ranks, width):
                self.iterate(clock, list(range(group, group + width)), i, slower, kernel, late, transfer)

    def iterate(self, clock, group, i, slower, kernel, late, transfer):
        came = {}
        for rank in group:
            issued = clock[rank] + late(rank, i)
            now = issued + LAUNCH
            for name in KERNELS:
                lasts = COMPUTE / len(KERNELS) * slower(rank, i) * kernel(rank, i, name)
                self.rows.append(self.row(rank, "", name, None, i, now, lasts, issued))
                now += lasts
            came[rank] = (now, issued + LAUNCH)
        end = max(now for now, _ in came.values()) + TRANSFER * transfer(group[0], i)
        name = "%d-%d" % (group[0], group[-1])
        for rank in group:
            start, issued = came[rank]
            self.rows.append(self.row(rank, name, "AllReduce", i, i, start, end - start, issued))
            clock[rank] = end

    @staticmethod
    def row(rank, group, operation, number, iteration, start, duration, issued):
        skew = 1000.0 * rank        # clocks can't be compared
        return {"rank": rank, "host": "n%d" % (rank // 2), "group": group, "operation": operation, "number": number,
                "iteration": iteration, "start": start + skew, "duration": duration, "issued": issued + skew,
                "bytes": 1 << 20 if group else None}

    def without(self, *columns):
        """The same of a source that does not say these."""
        for row in self.rows:
            for column in columns:
                row.pop(column)
        return self

    def without_kernels(self):
        self.rows = [row for row in self.rows if row["group"]]
        return self

    def launched_at_once(self):
        """The host launches all of an iteration at its beginning."""
        begin = {}
        for row in self.rows:
            row["issued"] = begin.setdefault((row["rank"], row["iteration"]), row["issued"])
        return self

    def csv(self, separator=",", ends="\n"):
        columns = [column for column in COLUMNS if column in self.rows[0]]
        text = io.StringIO()
        writer = csv.DictWriter(text, columns, delimiter=separator, lineterminator=ends)
        writer.writeheader()
        writer.writerows(self.rows)
        return text.getvalue()

    def json_lines(self):
        return "".join(json.dumps(row) + "\n" for row in self.rows)

    def chrome(self):
        """Complete events: microseconds, and in "args" what they have no key for."""
        events = [{"ph": "M", "name": "process_name", "pid": 0, "args": {"name": "rank 0"}}]
        for row in self.rows:
            arguments = {key: row[key] for key in ("group", "number", "iteration", "host", "bytes") if row.get(key) is not None}
            arguments["issued"] = row["issued"] * 1e6
            events.append({"ph": "X", "name": row["operation"], "pid": row["rank"], "tid": 0, "ts": row["start"] * 1e6,
                           "dur": row["duration"] * 1e6, "args": arguments})
        return json.dumps({"traceEvents": events})


class Buckets(Timeline):
    """Two buckets of gradients: the first is reduced beside the second half of the backward pass. Kernels are not recorded."""

    def __init__(self, ranks=4, iterations=60, late=lambda rank, i: 0):
        self.rows, clock = [], [0.0] * ranks
        name = "0-%d" % (ranks - 1)
        for i in range(iterations):
            first = [now + COMPUTE + late(rank, i) for rank, now in enumerate(clock)]
            ended = max(first) + COMPUTE
            second = [max(start + 1.2 * COMPUTE, ended) for start in first]
            end = max(second) + COMPUTE
            for rank in range(ranks):
                issued = clock[rank] + late(rank, i)
                self.rows.append(self.row(rank, name, "AllReduce", 2 * i, i, first[rank], ended - first[rank], issued))
                self.rows.append(self.row(rank, name, "AllReduce", 2 * i + 1, i, second[rank], end - second[rank], issued))
            clock = [end] * ranks


class Pipeline(Timeline):
    """Each rank is a stage; one batch an iteration goes forward and back."""

    def __init__(self, ranks=4, iterations=80, slower=lambda rank, i: 1, late=lambda rank, i: 0):
        self.rows, self.clock = [], [0.0] * ranks
        for i in range(iterations):
            self.train(range(ranks), i, slower, late)

    def train(self, ranks, i, slower, late):
        for rank in ranks:
            if rank > ranks[0]:
                self.send(rank - 1, rank, i)
            self.compute(rank, i, slower(rank, i), late(rank, i))
        for rank in reversed(ranks):
            if rank < ranks[-1]:
                self.send(rank + 1, rank, i)
            self.compute(rank, i, slower(rank, i), 0)

    def compute(self, rank, i, slower, late):
        issued = self.clock[rank] + late
        self.rows.append(self.row(rank, "", KERNELS[1], None, i, issued + LAUNCH, COMPUTE * slower, issued))
        self.clock[rank] = issued + LAUNCH + COMPUTE * slower

    def send(self, sender, receiver, i):
        end = max(self.clock[sender], self.clock[receiver]) + TRANSFER
        group = "%d-%d" % (min(sender, receiver), max(sender, receiver))
        for rank, operation in ((sender, "Send"), (receiver, "Recv")):
            start = self.clock[rank]
            self.rows.append(self.row(rank, group, operation, i, i, start, end - start, start))
            self.clock[rank] = end


class Replicas(Pipeline):
    """Two pipelines; each stage is reduced with that of the other."""

    def __init__(self, stages=8, iterations=60, slower=lambda rank, i: 1):
        self.rows, self.clock = [], [0.0] * 2 * stages
        for i in range(iterations):
            for first in (0, stages):
                self.train(range(first, first + stages), i, slower, lambda rank, i: 0)
            for stage in range(stages):
                self.reduce((stage, stages + stage), i)

    def reduce(self, ranks, i):
        end = max(self.clock[rank] for rank in ranks) + TRANSFER
        for rank in ranks:
            start = self.clock[rank]
            self.rows.append(self.row(rank, "%d %d" % ranks, "AllReduce", i, i, start, end - start, start))
            self.clock[rank] = end


class Grid(Timeline):
    """Four replicas of a model that is split over pairs of ranks. Gradients are reduced beside the backward pass."""

    FORWARD, BACKWARD = 2, 3        # layers, and buckets

    def __init__(self, iterations=60, slower=lambda rank, i: 1, transfer=lambda group, i: 1):
        self.rows, self.clock, self.reduced, self.count = [], [0.0] * 8, [0.0] * 8, {}
        for i in range(iterations):
            begun = list(self.clock)
            for layer in range(self.FORWARD + self.BACKWARD):
                for rank in range(8):
                    self.rows.append(self.row(rank, "", KERNELS[1], None, i, self.clock[rank], COMPUTE * slower(rank, i), begun[rank]))
                    self.clock[rank] += COMPUTE * slower(rank, i)
                for pair in ((0, 1), (2, 3), (4, 5), (6, 7)):
                    self.meet(pair, i, self.clock, list(self.clock), begun, transfer(pair, i))
                for ranks in ((0, 2, 4, 6), (1, 3, 5, 7)) if layer >= self.FORWARD else ():
                    self.meet(ranks, i, self.reduced, [max(times) for times in zip(self.clock, self.reduced)], begun, transfer(ranks, i))
            self.clock = [max(times) for times in zip(self.clock, self.reduced)]

    def meet(self, ranks, i, stream, came, begun, times):
        end, number = max(came[rank] for rank in ranks) + TRANSFER * times, self.count.get(ranks, 0)
        self.count[ranks] = number + 1
        for rank in ranks:
            self.rows.append(self.row(rank, " ".join(map(str, ranks)), "AllReduce", number, i, came[rank], end - came[rank], begun[rank]))
            stream[rank] = end


class Ring(Timeline):
    """Each rank sends a block to the next while it receives one from the rank before; then all reduce."""

    def __init__(self, ranks=4, iterations=60, slower=lambda rank, i: 1, named=True):
        self.rows, clock = [], [0.0] * ranks
        for i in range(iterations):
            begun = list(clock)
            for step in range(ranks - 1):
                number, ended = i * (ranks - 1) + step, [0.0] * ranks
                for rank in range(ranks):
                    other = (rank + 1) % ranks
                    group = "0-%d" % (ranks - 1) if named else "%d %d" % (rank, other)
                    end = max(begun[rank], begun[other]) + TRANSFER
                    for one, operation, peer in ((rank, "Send", other), (other, "Recv", rank)):
                        row = self.row(one, group, operation, number, i, begun[one], end - begun[one], begun[one])
                        self.rows.append({**row, "peer": peer})
                        ended[one] = max(ended[one], end)
                begun = [max(end, now + COMPUTE * slower(rank, i)) for rank, (now, end) in enumerate(zip(begun, ended))]
            end = max(begun) + TRANSFER
            for rank, start in enumerate(begun):
                self.rows.append(self.row(rank, "all", "AllReduce", i, i, start, end - start, start))
            clock = [end] * ranks
