"""Flight Recorder dumps that name one value very often: a pickle of a few bytes must not become work or records without end."""

import os
import pathlib
import struct

import flight_dump as flight
from importer import Importer, main

FILE_BYTES = 3_000_000
SHARED = 60000          # the place of the shared value in the pickle's memo
KEEP = b"r" + struct.pack("<I", SHARED)
AGAIN = b"j" + struct.pack("<I", SHARED)
DROP = b"0"


class Shared(flight.Pickler):
    """Writes a dump up to its rows."""

    def __init__(self):
        super().__init__()
        self.out += b"}("
        for key, value in flight.dump([]).items():
            if key != "entries":
                self.add(key)
                self.add(value)

    def begin_rows(self):
        self.add("entries")
        self.out += b"]("

    def row(self, seq, key=None, value=b""):
        self.out += b"}("
        for name, text in ("profiling_name", "nccl:all_reduce"), ("state", "completed"), ("process_group", ("0", "default_pg")), ("collective_seq_id", seq):
            self.add(name)
            self.add(text)
        if key:
            self.add(key)
            self.out += value
        self.out += b"u"

    def rows(self, key, value):
        """As many as make the file that large."""
        self.begin_rows()
        seq = 0
        while len(self.out) < FILE_BYTES:
            seq += 1
            self.row(seq, key, value)
        return seq

    def bytes(self):
        return bytes(self.out + b"eu.")


class SharedValues(Importer):
    def importing_bytes(self, content):
        folder = pathlib.Path(self.folder) / ("dumps-%d" % self.count)
        folder.mkdir()
        (folder / "nccl_trace_rank_0").write_bytes(content)
        return self.importing(str(folder)), len(content)

    def calls(self):
        return self.query("SELECT count(*) FROM v_collective")[0][0]

    def test_one_row_many_times(self):
        shared = Shared()
        shared.begin_rows()
        shared.row(1)
        shared.out += KEEP
        times = (FILE_BYTES - len(shared.out)) // len(AGAIN)
        shared.out += AGAIN * times
        result, _ = self.importing_bytes(shared.bytes())
        self.assertIn("%d entries are left out: each is the same as one before, and a recorder writes each once" % times, result.err)
        self.assertLess(os.path.getsize(result.database), FILE_BYTES)

    def test_one_list_of_sizes(self):
        for end in b"](K\x01e", b"N":        # of numbers, and one that is none
            shared = Shared()
            shared.out += b"](" + b"](K\x01e" * (FILE_BYTES // 2 // 5) + end + b"e" + KEEP + DROP
            shared.rows("input_sizes", AGAIN)
            result, _ = self.importing_bytes(shared.bytes())
            self.assertEqual((result.status, result.err), (0, ""))

    def test_one_tensor_of_many_dimensions(self):
        shared = Shared()
        shared.out += b"](" + b"K\x01" * (FILE_BYTES // 4) + b"e" + KEEP + DROP
        shared.rows("input_sizes", b"](" + AGAIN * 100 + b"e")
        result, _ = self.importing_bytes(shared.bytes())
        self.assertEqual((result.status, result.err), (0, ""))

    def test_one_frame(self):
        """Of a long text, and of many fields."""
        shared = Shared()
        shared.out += b"}("
        for key, value in ("filename", "x" * (FILE_BYTES // 4)), ("name", "step"):
            shared.add(key)
            shared.add(value)
        for field in range(FILE_BYTES // 4 // 7):
            shared.add(field)
            shared.out += b"N"
        shared.out += b"u" + KEEP + DROP
        shared.rows("frames", b"](" + AGAIN * 100 + b"e")
        result, _ = self.importing_bytes(shared.bytes())
        self.assertEqual((result.status, result.err), (0, ""))

    def test_what_pytorch_shares(self):
        """Texts, and the frames of calls from one place."""
        where = flight.frames(7)
        rows = [flight.entry(i, "all_reduce", frames=where) for i in range(50)]
        result, _ = self.importing_bytes(flight.pickle(flight.dump(rows), shared=(where,)))
        self.assertEqual((result.status, result.err), (0, ""))


main()
