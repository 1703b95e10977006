"""Ranks that no launcher's variables name have their rank in the world in every view and export: from the largest communicator
and the parents of splits, never -1, "-" or the number of the process."""

import csv
import io
import json
import os
import sys

from line import Line


def main():
    with Line(sys.argv[1], name="without-launcher") as line:
        program = os.path.join(line.build, "tests", "suite", "hang", "missing_in_split_without_launcher")
        line.run([program], ["--hang-after", "2", "--timeout", "4"])
        _, text, _ = line.call([line.tool, "report", line.trace])
        assert "rank 3 never called it" in " ".join(text.split()), text
        rows = list(csv.DictReader(io.StringIO(line.call([line.tool, "export", "--format", "csv", line.trace])[1])))
        assert {(row["rank"], row["comm_rank"]) for row in rows} == {("0", "0"), ("1", "1"), ("2", "0"), ("3", "1")}, rows
        _, text, _ = line.call([line.tool, "export", "--format", "prometheus", line.trace])
        assert 'rank="3"' in text and "pid=" not in text, text[:2000]
        _, text, _ = line.call([line.tool, "export", "--format", "chrome", line.trace])
        names = {event["args"]["name"].split(" (")[0] for event in json.loads(text)["traceEvents"] if event.get("name") == "process_name"}
        assert names >= {"rank 0", "rank 1", "rank 2", "rank 3"}, names
        assert not [name for name in names if name.startswith("process")], names
        _, text, _ = line.call([line.tool, "tui", "--once", "--view", "ranks", line.trace])
        assert [part.split()[0] for part in text.replace("! 3", "3").splitlines()[-4:]] == ["3", "0", "1", "2"], text
        ranks = {row[0] for row in line.query("SELECT DISTINCT rank FROM v_event UNION SELECT world_rank FROM v_collective "
                                              "UNION SELECT world_rank FROM v_member UNION SELECT rank FROM v_wait")}
        assert ranks == {0, 1, 2, 3}, ranks
        _, text, _ = line.call([line.tool, "report", "--env", line.trace])
        assert "What the ranks ran in" in text and "NCCL " in text, text
    print("ranks 0-3")


if __name__ == "__main__":
    main()
