-- schema_finding.sql: what the sides of findings did, as fields.

-- One row for what a side did (moment 'did') and one for where it is now ('now'), as far as that is known. `did` is a key of
-- lib/finding/acts.def ("never called", "exited"); value is an exit status or a signal, name that of a kernel, tensor or
-- set of ranks; fields that mean nothing for `did` are 0 or ''.
CREATE TABLE finding_act(
  finding INTEGER NOT NULL, side INTEGER NOT NULL, moment TEXT NOT NULL,
  did TEXT NOT NULL, value INTEGER NOT NULL, rank INTEGER NOT NULL, number INTEGER NOT NULL,
  name TEXT NOT NULL, phase TEXT NOT NULL,
  PRIMARY KEY(finding, side, moment)
) WITHOUT ROWID;

-- The calls of an act: role 'call' is the one it is about, 'wait' what it waits for and 'behind' what that stands behind, for
-- which kind is operation, setup, split, shrink, window or teardown of communicator `comm`. Arguments are those whose bit is set
-- (lib/trace/call.h); api, datatype and redop are rows of the tables of these names.
CREATE TABLE finding_call(
  finding INTEGER NOT NULL, side INTEGER NOT NULL, moment TEXT NOT NULL, role TEXT NOT NULL,
  kind TEXT NOT NULL, comm INTEGER NOT NULL, number INTEGER NOT NULL,
  api INTEGER NOT NULL, arguments INTEGER NOT NULL, datatype INTEGER NOT NULL, redop INTEGER NOT NULL,
  peer INTEGER NOT NULL, size INTEGER NOT NULL, count INTEGER NOT NULL, bytes INTEGER NOT NULL,
  PRIMARY KEY(finding, side, moment, role)
) WITHOUT ROWID;

-- What people call the communicators of these calls, "comm 5ae7 (4 ranks)".
CREATE TABLE finding_comm(comm INTEGER PRIMARY KEY, title TEXT NOT NULL);
