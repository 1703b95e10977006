"""What PyTorch's own analyzer (torchfrtrace) says of folders of Flight Recorder dumps: one JSON line for each folder.

verdicts.py FOLDER...: {"folder", "says"}. In one process, since importing PyTorch takes longer than the analysis. Status 77:
this PyTorch comes without it, as 2.8 does."""

import contextlib
import io
import json
import logging
import os
import sys

try:
    from torch.distributed.flight_recorder import fr_trace
except ImportError:
    sys.exit(77)


def verdict(folder):
    said, log = io.StringIO(), logging.StreamHandler()
    log.setStream(said)
    logging.getLogger().addHandler(log)
    for name in list(logging.root.manager.loggerDict):
        for handler in logging.getLogger(name).handlers:
            if isinstance(handler, logging.StreamHandler):
                handler.setStream(said)
    os.chdir(folder)
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        fr_trace.main([folder])
    return said.getvalue()


for folder in sys.argv[1:]:
    print(json.dumps({"folder": folder, "says": verdict(folder)}), flush=True)
