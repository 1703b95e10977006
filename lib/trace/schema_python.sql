-- schema_python.sql: Python, and its libraries.

-- Stacks of Python frames; file and function are rows of string, native is the stack beneath them or 0.
CREATE TABLE python(
  process INTEGER NOT NULL, id INTEGER NOT NULL, depth INTEGER NOT NULL,
  file INTEGER NOT NULL, function INTEGER NOT NULL, line INTEGER NOT NULL, native INTEGER NOT NULL,
  PRIMARY KEY(process, id, depth)
) WITHOUT ROWID;

-- Libraries of a process whose version is known beside NCCL's and CUDA's, which are in `process`: 21000 is PyTorch 2.10.0.
CREATE TABLE library(
  process INTEGER NOT NULL, name TEXT NOT NULL, version INTEGER NOT NULL,
  PRIMARY KEY(process, name)
) WITHOUT ROWID;

-- What processes run in: the variables that NCCL, CUDA and PyTorch read, as they were at the first NCCL call, and facts about the
-- host. set_by: 'start', 'program' (after the process began; value NULL: it removed the variable), 'host'.
CREATE TABLE setting(
  process INTEGER NOT NULL, name TEXT NOT NULL, value TEXT, set_by TEXT NOT NULL,
  PRIMARY KEY(process, name)
) WITHOUT ROWID;

-- Where threads stood when the collector asked, because the job hung: the Python frames, else the native ones.
CREATE VIEW v_thread_stack AS
  WITH standing AS (
    SELECT e.seq, e.process, e.stack, e.w0 AS capture, e.w1 & 4294967295 AS thread, e.w1 >> 32 AS flags, n.text AS name,
           e.time_ns, coalesce((SELECT k.native FROM python k WHERE k.process = e.process AND k.id = e.stack AND k.depth = 0),
                               e.stack) AS native
    FROM event e JOIN api a ON a.number = e.api LEFT JOIN string n ON n.process = e.process AND n.id = e.w2
    WHERE a.name = 'notice_thread_stack'),
  named AS (
    SELECT process, address, 0 AS outward, function, file, line FROM symbol
    UNION ALL SELECT process, address, depth, function, nullif(file, ''), line FROM inlined)
  SELECT s.seq, p.rank, p.host, p.pid, s.thread, s.name, s.flags & 1 AS is_main, s.capture, k.depth, 'python' AS kind,
         u.text AS function, t.text AS file, k.line, s.time_ns + p.realtime_ns - p.monotonic_ns AS realtime_ns
  FROM standing s JOIN ranked_process p ON p.id = s.process JOIN python k ON k.process = s.process AND k.id = s.stack
       LEFT JOIN string t ON t.process = k.process AND t.id = k.file LEFT JOIN string u ON u.process = k.process AND u.id = k.function
  UNION ALL
  SELECT s.seq, p.rank, p.host, p.pid, s.thread, s.name, s.flags & 1, s.capture,
         row_number() OVER (PARTITION BY s.seq ORDER BY k.depth, y.outward) - 1, 'native',
         coalesce(y.function, printf('0x%x', k.address)), y.file, coalesce(y.line, 0), s.time_ns + p.realtime_ns - p.monotonic_ns
  FROM standing s JOIN ranked_process p ON p.id = s.process JOIN stack k ON k.process = s.process AND k.id = s.native
       LEFT JOIN named y ON y.process = k.process AND y.address = k.address
  ORDER BY 1, 10 DESC, 9;

