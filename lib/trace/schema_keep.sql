-- schema_keep.sql: what was dropped to keep the database within its limit (--keep).

-- Per process and kind of record how many rows of `event` were dropped, and from when to when; times are CLOCK_MONOTONIC of the
-- host. `what` is cuda: copies, kernels and ranges; calls: collectives, messages and waits that were over, and what belongs to
-- them. The search for more goes on after row `seq`.
CREATE TABLE dropped(
  process INTEGER NOT NULL, what TEXT NOT NULL, records INTEGER NOT NULL,
  first_ns INTEGER NOT NULL, last_ns INTEGER NOT NULL, seq INTEGER NOT NULL,
  PRIMARY KEY(process, what)
) WITHOUT ROWID;

-- The collectives of a member that were dropped, in blocks of 1,024 as in operation_block, which keeps their hash: how many, of
-- how many elements, issued from when to when, and how long the host was in these calls, in all and in the longest.
CREATE TABLE operation_digest(
  comm INTEGER NOT NULL, rank INTEGER NOT NULL, block INTEGER NOT NULL, process INTEGER NOT NULL,
  calls INTEGER NOT NULL, elements INTEGER NOT NULL, first_ns INTEGER NOT NULL, last_ns INTEGER NOT NULL,
  host_ns INTEGER NOT NULL, longest_ns INTEGER NOT NULL,
  PRIMARY KEY(comm, rank, block)
) WITHOUT ROWID;

-- Where a member's collectives begin now: its first `number` that may be there, and the row of `event` that says so
-- (notice_reached).
CREATE TABLE member_start(
  comm INTEGER NOT NULL, rank INTEGER NOT NULL, process INTEGER NOT NULL, number INTEGER NOT NULL,
  seq INTEGER NOT NULL, time_ns INTEGER NOT NULL,
  PRIMARY KEY(comm, rank)
) WITHOUT ROWID;

CREATE VIEW v_dropped AS
  SELECT p.rank, d.what, d.records, d.first_ns + p.realtime_ns - p.monotonic_ns AS first_ns,
         d.last_ns + p.realtime_ns - p.monotonic_ns AS last_ns, p.host, p.pid, d.process
  FROM dropped d JOIN ranked_process p ON p.id = d.process;

-- hash is NULL where it is not known.
CREATE VIEW v_digest AS
  SELECT printf('%016x', d.comm) AS communicator, d.rank, d.block * 1024 AS first_number, d.calls, d.elements,
         d.first_ns + p.realtime_ns - p.monotonic_ns AS first_ns, d.last_ns + p.realtime_ns - p.monotonic_ns AS last_ns,
         d.host_ns, d.longest_ns, CASE WHEN b.hash <> 0 THEN printf('%016x', b.hash) END AS hash, p.host, p.pid, d.process
  FROM operation_digest d JOIN ranked_process p ON p.id = d.process
       LEFT JOIN operation_block b ON b.comm = d.comm AND b.rank = d.rank AND b.block = d.block;
