-- schema.sql: the trace database, docs/schema.md says it in words.
--
-- Unsigned 64-bit values (addresses, ids, handles) are stored as the signed integer of the same bits.
-- Times in tables are CLOCK_MONOTONIC of the host; times in views are realtime (epoch) nanoseconds.

CREATE TABLE meta(
  key TEXT PRIMARY KEY NOT NULL,
  value TEXT NOT NULL
) WITHOUT ROWID;

-- What numbers mean; filled by the collector that made the file.
CREATE TABLE api(number INTEGER PRIMARY KEY, name TEXT NOT NULL, class TEXT NOT NULL);
CREATE TABLE datatype(number INTEGER PRIMARY KEY, name TEXT NOT NULL, bytes INTEGER NOT NULL);
CREATE TABLE redop(number INTEGER PRIMARY KEY, name TEXT NOT NULL);

-- One row per process that recorded something; -1 stands for "not known".
CREATE TABLE process(
  id INTEGER PRIMARY KEY,
  pid INTEGER NOT NULL, start_ticks INTEGER NOT NULL, boot_id TEXT NOT NULL,
  realtime_ns INTEGER NOT NULL, monotonic_ns INTEGER NOT NULL,
  rank INTEGER NOT NULL, local_rank INTEGER NOT NULL, world_size INTEGER NOT NULL, restart INTEGER NOT NULL,
  uid INTEGER NOT NULL,
  nccl_version INTEGER NOT NULL, cuda_runtime_version INTEGER NOT NULL, cuda_driver_version INTEGER NOT NULL,
  host TEXT NOT NULL, launcher TEXT NOT NULL, job TEXT NOT NULL, program TEXT NOT NULL, command TEXT NOT NULL,
  UNIQUE(boot_id, pid, start_ticks, monotonic_ns)
);

-- The records, in the order in which they were taken; w0..w9 are the record's payload, whose meaning
-- depends on the api's class (lib/trace/record.h). The views below give them names.
-- No column is ever NULL; to have that checked would take a twentieth of the time that a row takes.
CREATE TABLE event(
  seq INTEGER PRIMARY KEY,
  process INTEGER, time_ns INTEGER, serial INTEGER,
  api INTEGER, phase INTEGER, flags INTEGER, thread INTEGER,
  result INTEGER, device INTEGER, stack INTEGER, stream INTEGER,
  w0 INTEGER, w1 INTEGER, w2 INTEGER, w3 INTEGER, w4 INTEGER,
  w5 INTEGER, w6 INTEGER, w7 INTEGER, w8 INTEGER, w9 INTEGER
);
-- From a call to its return: w0 of a LEAVE is the serial of its ENTER.
CREATE INDEX event_leave ON event(process, w0) WHERE phase = 2;

-- What the pieces in notice_string, notice_stack and notice_module say when put together.
CREATE TABLE string(
  process INTEGER NOT NULL, id INTEGER NOT NULL, bytes INTEGER NOT NULL, text TEXT NOT NULL,
  PRIMARY KEY(process, id)
) WITHOUT ROWID;
CREATE TABLE stack(
  process INTEGER NOT NULL, id INTEGER NOT NULL, depth INTEGER NOT NULL, address INTEGER NOT NULL,
  PRIMARY KEY(process, id, depth)
) WITHOUT ROWID;
CREATE TABLE module(
  id INTEGER PRIMARY KEY,
  process INTEGER NOT NULL, base INTEGER NOT NULL, start INTEGER NOT NULL, "end" INTEGER NOT NULL,
  path INTEGER NOT NULL, build_id TEXT NOT NULL,
  UNIQUE(process, start, "end", base, path, build_id)
);
CREATE TABLE symbol(
  process INTEGER NOT NULL, address INTEGER NOT NULL,
  module TEXT NOT NULL, function TEXT NOT NULL, file TEXT, line INTEGER NOT NULL,
  PRIMARY KEY(process, address)
) WITHOUT ROWID;

CREATE TABLE finding(
  id INTEGER PRIMARY KEY,
  code TEXT NOT NULL, severity TEXT NOT NULL, certainty TEXT NOT NULL, state TEXT NOT NULL,
  comm INTEGER NOT NULL, number INTEGER, first_ns INTEGER NOT NULL, last_ns INTEGER NOT NULL,
  times INTEGER NOT NULL, fingerprint INTEGER NOT NULL, what TEXT NOT NULL, todo TEXT NOT NULL
);
CREATE TABLE finding_side(
  finding INTEGER NOT NULL, side INTEGER NOT NULL, ranks TEXT NOT NULL, process INTEGER NOT NULL,
  call TEXT NOT NULL, phase TEXT NOT NULL, "where" TEXT NOT NULL, since_ns INTEGER NOT NULL,
  stack INTEGER NOT NULL, stack_is_address INTEGER NOT NULL,
  where_stack INTEGER NOT NULL, where_stack_is_address INTEGER NOT NULL,
  PRIMARY KEY(finding, side)
) WITHOUT ROWID;

-- How far each ring was read: the next position to take.
CREATE TABLE ring_position(
  process INTEGER NOT NULL, ring INTEGER NOT NULL, position INTEGER NOT NULL,
  PRIMARY KEY(process, ring)
) WITHOUT ROWID;

-- Each process with the rank of the world that people know: the launcher's, else what its communicators show (the lowest
-- where it has several); NULL: not known.
CREATE VIEW ranked_process AS
  SELECT p.id, p.pid, p.realtime_ns, p.monotonic_ns, p.host,
         CASE WHEN p.rank >= 0 THEN p.rank
              ELSE (SELECT min(m.shown_rank) FROM member_state m WHERE m.process = p.id AND m.shown_rank >= 0) END AS rank
  FROM process p;

CREATE VIEW v_event AS
  SELECT e.seq, p.rank, p.pid, e.thread, e.time_ns + p.realtime_ns - p.monotonic_ns AS realtime_ns, e.serial,
         coalesce(a.name, e.api) AS call, a.class, CASE e.phase WHEN 0 THEN 'point' WHEN 1 THEN 'enter' ELSE 'leave' END AS phase,
         e.result, e.device, printf('0x%x', e.stream) AS stream, printf('0x%x', e.stack) AS stack,
         e.w0, e.w1, e.w2, e.w3, e.w4, e.w5, e.w6, e.w7, e.w8, e.w9
  FROM event e JOIN ranked_process p ON p.id = e.process LEFT JOIN api a ON a.number = e.api;

-- Collectives, sends and receives; returned_ns and result are NULL while the call has not returned. begin_ns and end_ns are
-- when the collector saw that the stream had reached and passed it (api 260, notice_progress), or when the GPU did (256,
-- notice_timed); state is how far it was at last ('called', 'running', 'done', 'failed'). NULL: the trace does not show it.
CREATE VIEW v_collective AS
  SELECT e.seq, printf('%016x', e.w0) AS communicator, coalesce(b.label, 'comm ' || substr(printf('%016x', e.w0), 1, 4)) AS label,
         e.w8 >> 32 AS rank, e.w1 AS number, a.name, e.w4 AS count,
         coalesce(t.name, e.w5 & 255) AS datatype,
         CASE WHEN e.w5 >> 8 & 255 <> 255 THEN coalesce(r.name, e.w5 >> 8 & 255) END AS redop,
         CASE WHEN e.w5 >> 32 >= 0 THEN e.w5 >> 32 END AS root,
         printf('0x%x', e.w2) AS sendbuff, printf('0x%x', e.w3) AS recvbuff, printf('0x%x', e.stream) AS stream,
         e.time_ns + p.realtime_ns - p.monotonic_ns AS issued_ns,
         l.time_ns + p.realtime_ns - p.monotonic_ns AS returned_ns,
         CASE WHEN e.w9 > 0 AND coalesce(e.w1 < m.started, 1) THEN
           (SELECT CASE g.api WHEN 256 THEN g.w1 ELSE g.time_ns END FROM event g WHERE g.seq > e.seq AND g.process = e.process
            AND (g.api = 260 AND g.w0 & 4294967295 = e.w8 & 4294967295 AND g.w1 >= e.w9
                 OR g.api = 256 AND g.w3 & 4294967295 = e.w8 & 4294967295 AND g.w0 = e.w9) ORDER BY g.seq LIMIT 1)
         END + p.realtime_ns - p.monotonic_ns AS begin_ns,
         CASE WHEN e.w9 > 0 AND coalesce(e.w1 < m.done, 1) THEN
           (SELECT CASE g.api WHEN 256 THEN g.w2 ELSE g.time_ns END FROM event g WHERE g.seq > e.seq AND g.process = e.process
            AND (g.api = 260 AND g.w0 & 4294967295 = e.w8 & 4294967295 AND g.w2 >= e.w9
                 OR g.api = 256 AND g.w3 & 4294967295 = e.w8 & 4294967295 AND g.w0 = e.w9) ORDER BY g.seq LIMIT 1)
         END + p.realtime_ns - p.monotonic_ns AS end_ns,
         CASE WHEN l.result NOT IN (0, 7) THEN 'failed' WHEN e.w1 < m.done THEN 'done' WHEN e.w1 < m.started THEN 'running'
              WHEN m.done IS NOT NULL THEN 'called'
              WHEN e.w9 > 0 AND EXISTS (SELECT 1 FROM event g WHERE g.seq > e.seq AND g.process = e.process AND g.api = 260
                AND g.w0 & 4294967295 = e.w8 & 4294967295 AND g.w2 >= e.w9) THEN 'done'
              WHEN e.w9 > 0 AND EXISTS (SELECT 1 FROM event g WHERE g.seq > e.seq AND g.process = e.process AND g.api = 260
                AND g.w0 & 4294967295 = e.w8 & 4294967295 AND g.w1 >= e.w9) THEN 'running'
              WHEN e.w9 > 0 THEN 'called' END AS state,
         l.result,
         CASE WHEN e.w8 & 4294967295 <> 4294967295 THEN e.w8 & 4294967295 END AS slot, e.w9 AS launch,
         CASE WHEN e.w7 <> 0 THEN e.w7 END AS "group", e.device, p.host, p.pid, e.thread, e.process, e.serial,
         coalesce(w.shown_rank, p.rank) AS world_rank
  FROM event e JOIN ranked_process p ON p.id = e.process JOIN api a ON a.number = e.api
       LEFT JOIN datatype t ON t.number = e.w5 & 255 LEFT JOIN redop r ON r.number = e.w5 >> 8 & 255
       LEFT JOIN event l ON l.phase = 2 AND l.process = e.process AND l.w0 = e.serial
       LEFT JOIN comm_label b ON b.comm = e.w0
       LEFT JOIN member_state w ON w.comm = e.w0 AND w.rank = e.w8 >> 32
       LEFT JOIN member_state m ON a.class = 'collective' AND m.comm = w.comm AND m.rank = w.rank
  WHERE e.phase = 1 AND a.class IN ('collective', 'p2p');

-- Host calls that wait for the device.
CREATE VIEW v_wait AS
  SELECT e.seq, p.rank, a.name, printf('0x%x', e.stream) AS stream, printf('0x%x', e.w0) AS event,
         printf('0x%x', e.w1) AS dst, printf('0x%x', e.w2) AS src, e.w3 AS bytes,
         e.time_ns + p.realtime_ns - p.monotonic_ns AS entered_ns,
         l.time_ns + p.realtime_ns - p.monotonic_ns AS returned_ns, l.time_ns - e.time_ns AS waited_ns, l.result,
         e.device, p.host, p.pid, e.thread, e.process, e.serial
  FROM event e JOIN ranked_process p ON p.id = e.process JOIN api a ON a.number = e.api
       LEFT JOIN event l ON l.phase = 2 AND l.process = e.process AND l.w0 = e.serial
  WHERE e.phase = 1 AND a.class = 'wait';

-- Members of communicators, as they came to exist.
CREATE VIEW v_member AS
  SELECT e.seq, printf('%016x', e.w0) AS communicator, CASE WHEN e.w1 <> 0 THEN printf('%016x', e.w1) END AS parent,
         e.w3 >> 32 AS rank, (e.w3 & 4294967295) AS nranks, e.w4 << 32 >> 32 AS device,
         printf('%016x', e.w6) AS gpu, printf('0x%x', e.w2) AS handle,
         e.time_ns + p.realtime_ns - p.monotonic_ns AS realtime_ns, p.rank AS process_rank, p.host, p.pid, e.process,
         coalesce(m.shown_rank, p.rank) AS world_rank
  FROM event e JOIN ranked_process p ON p.id = e.process JOIN api a ON a.number = e.api
       LEFT JOIN member_state m ON m.comm = e.w0 AND m.rank = e.w3 >> 32
  WHERE a.name = 'notice_member';

CREATE VIEW v_memory AS
  SELECT e.seq, p.rank, a.name, printf('0x%x', e.w0) AS pointer, e.w1 AS bytes,
         CASE e.w2 WHEN 1 THEN 'pageable host' WHEN 2 THEN 'pinned host' WHEN 3 THEN 'device' WHEN 4 THEN 'managed'
                   WHEN 5 THEN 'shared host' WHEN 6 THEN 'mapped device'
                   ELSE 'unknown memory' END AS type,
         e.device, e.result, e.time_ns + p.realtime_ns - p.monotonic_ns AS realtime_ns, p.host, p.pid, e.thread, e.process
  FROM event e JOIN ranked_process p ON p.id = e.process JOIN api a ON a.number = e.api
  WHERE a.class = 'memory';

CREATE VIEW v_launch AS
  SELECT e.seq, p.rank, a.name AS call, coalesce(s.text, printf('%016x', e.w0)) AS kernel,
         e.w1 & 4294967295 AS blocks, e.w1 >> 32 & 4294967295 AS threads, e.w2 & 255 AS pointers,
         printf('0x%x', e.stream) AS stream, e.device, e.result,
         e.time_ns + p.realtime_ns - p.monotonic_ns AS realtime_ns, p.host, p.pid, e.thread, e.process
  FROM event e JOIN ranked_process p ON p.id = e.process JOIN api a ON a.number = e.api
       LEFT JOIN string s ON s.process = e.process AND s.id = e.w0
  WHERE a.class = 'launch' AND e.flags & 2 = 0;

-- How far the GPU got: all launches of the slot up to `started` were reached, up to `done` were passed.
CREATE VIEW v_progress AS
  SELECT e.seq, p.rank, e.w0 & 4294967295 AS slot, e.w1 AS started, e.w2 AS done,
         e.time_ns + p.realtime_ns - p.monotonic_ns AS realtime_ns, p.host, p.pid, e.process
  FROM event e JOIN ranked_process p ON p.id = e.process JOIN api a ON a.number = e.api
  WHERE a.name = 'notice_progress';

-- Payload hashes (ddpcheck run --hash), as the GPU left them; operation and number as in v_collective.
CREATE VIEW v_hash AS
  SELECT e.seq, printf('%016x', e.w0) AS communicator, e.w6 << 32 >> 32 AS rank,
         coalesce(o.name, (e.w6 >> 48) & 65535) AS operation, e.w1 AS number,
         CASE e.w6 >> 32 & 255 WHEN 0 THEN 'sent, before' WHEN 1 THEN 'sent, after' WHEN 2 THEN 'received' ELSE 'named' END AS what,
         s.text AS name, e.w4 AS bytes, printf('%016x', e.w2) AS hash, e.w3 & 4294967295 AS nans, e.w3 >> 32 & 4294967295 AS infs,
         e.w6 >> 40 & 1 AS uniform, e.time_ns + p.realtime_ns - p.monotonic_ns AS realtime_ns, p.host, p.pid, e.process,
         coalesce(m.shown_rank, p.rank) AS world_rank
  FROM event e JOIN ranked_process p ON p.id = e.process JOIN api a ON a.number = e.api
       LEFT JOIN member_state m ON m.comm = e.w0 AND m.rank = e.w6 << 32 >> 32
       LEFT JOIN api o ON o.number = (e.w6 >> 48) & 65535 LEFT JOIN string s ON s.process = e.process AND s.id = e.w7
  WHERE a.name = 'notice_hash';

-- One row per side of a finding; the place is the innermost known frame of the side's call.
CREATE VIEW v_finding AS
  SELECT f.id, f.code, f.severity, f.certainty, f.state, f.what, f.todo,
         CASE WHEN f.comm <> 0 THEN printf('%016x', f.comm) END AS communicator, f.number, f.times,
         datetime(f.first_ns / 1000000000, 'unixepoch') AS first_seen, datetime(f.last_ns / 1000000000, 'unixepoch') AS last_seen,
         printf('%016x', f.fingerprint) AS fingerprint,
         d.side, d.ranks, d.call, d.phase, d."where",
         coalesce(
           (SELECT u.text || ' at ' || t.text || ':' || y.line FROM python y
            JOIN string t ON t.process = y.process AND t.id = y.file JOIN string u ON u.process = y.process AND u.id = y.function
            WHERE NOT d.stack_is_address AND y.process = d.process AND y.id = d.stack AND y.depth = 0),
           (SELECT y.function || coalesce(' at ' || y.file || ':' || y.line, '') FROM symbol y
            WHERE y.process = d.process AND y.address = CASE WHEN d.stack_is_address THEN d.stack
              ELSE (SELECT k.address FROM stack k WHERE k.process = d.process AND k.id = d.stack AND k.depth = 0) END)) AS place
  FROM finding f LEFT JOIN finding_side d ON d.finding = f.id
  ORDER BY f.id, d.side;
