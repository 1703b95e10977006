"""What `ddpcheck report` says about a job, to compare a job on many hosts with the same on one."""

import json
import subprocess

from hub import PATIENCE_S


def act_of(act):
    return (act["did"], (act["call"] or {}).get("function")) if act else None


def findings(ddpcheck, database):
    """Each finding that is no note: code, certainty, fingerprint and, for each side, ranks, acts and lines."""
    done = subprocess.run([ddpcheck, "report", "--json", database], capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    return [(line["code"], line["certainty"], line["fingerprint"],
             [(side["ranks"], act_of(side["act"]), act_of(side["now"]), [frame["line"] for frame in side["frames"]])
              for side in line["sides"]])
            for line in lines if line["schema"] == "ddpcheck.finding/1" and line["severity"] != "note"]
