-- schema_keep.sql: what was dropped to keep the database within its limit (--keep), since schema 1.5. Run on every database
-- that is opened for writing, as schema_state.sql is.

-- Per process and kind of record how many rows of `event` were dropped, and from when to when; times are CLOCK_MONOTONIC of the
-- host. `what` is cuda: copies, kernels and ranges. The search for more goes on after row `seq`.
CREATE TABLE IF NOT EXISTS dropped(
  process INTEGER NOT NULL, what TEXT NOT NULL, records INTEGER NOT NULL,
  first_ns INTEGER NOT NULL, last_ns INTEGER NOT NULL, seq INTEGER NOT NULL,
  PRIMARY KEY(process, what)
) WITHOUT ROWID;

CREATE VIEW IF NOT EXISTS v_dropped AS
  SELECT p.rank, d.what, d.records, d.first_ns + p.realtime_ns - p.monotonic_ns AS first_ns,
         d.last_ns + p.realtime_ns - p.monotonic_ns AS last_ns, p.host, p.pid, d.process
  FROM dropped d JOIN process p ON p.id = d.process;
