-- schema_state.sql: how the job stands.

-- Each member of each communicator as the collector last saw it, so that a reader need not read every event.
-- "where" says in words where its process is; issued, started and done count collectives. Times are realtime.
CREATE TABLE member_state(
  comm INTEGER NOT NULL, rank INTEGER NOT NULL,
  shown_rank INTEGER NOT NULL, nranks INTEGER NOT NULL, process INTEGER NOT NULL, device INTEGER NOT NULL,
  issued INTEGER NOT NULL, started INTEGER NOT NULL, done INTEGER NOT NULL, p2p INTEGER NOT NULL,
  destroyed INTEGER NOT NULL, ended INTEGER NOT NULL,
  "where" TEXT NOT NULL, phase TEXT NOT NULL, last_call TEXT NOT NULL,
  stack INTEGER NOT NULL, stack_is_address INTEGER NOT NULL, since_ns INTEGER NOT NULL, updated_ns INTEGER NOT NULL,
  PRIMARY KEY(comm, rank)
); -- of an import in the order in which the communicators were made

-- What the program calls its communicators, "comm generator"; without a row for those that it has not named.
CREATE TABLE comm_label(comm INTEGER PRIMARY KEY, label TEXT NOT NULL);

-- The functions that the function of a row of symbol was inlined into: depth 1 is its caller, the deepest the
-- function of the object file; line is where each called the one before it (0: not known).
CREATE TABLE inlined(
  process INTEGER NOT NULL, address INTEGER NOT NULL, depth INTEGER NOT NULL,
  function TEXT NOT NULL, file TEXT NOT NULL, line INTEGER NOT NULL,
  PRIMARY KEY(process, address, depth)
) WITHOUT ROWID;

-- What is known of each process besides its records: how many were lost for want of room, how it ended (payload end of
-- lib/trace/record.h), times of the host's monotonic clock.
CREATE TABLE process_state(
  process INTEGER PRIMARY KEY,
  lost_control INTEGER NOT NULL DEFAULT 0, lost_bulk INTEGER NOT NULL DEFAULT 0,
  ended INTEGER NOT NULL DEFAULT 0, how INTEGER NOT NULL DEFAULT 0, value INTEGER NOT NULL DEFAULT 0,
  out_of_memory INTEGER NOT NULL DEFAULT 0, end_ns INTEGER NOT NULL DEFAULT 0
);

-- Where each 1,024 collectives of a member begin in `event`, and a hash of what they were (0: not known): members whose
-- hashes agree called the same.
CREATE TABLE operation_block(
  comm INTEGER NOT NULL, rank INTEGER NOT NULL, block INTEGER NOT NULL,
  process INTEGER NOT NULL, seq INTEGER NOT NULL, hash INTEGER NOT NULL,
  PRIMARY KEY(comm, rank, block)
) WITHOUT ROWID;

-- Few rows: where threads stood when the collector asked (notice_thread_stack), for readers that look for them alone.
CREATE INDEX event_thread_stack ON event(process, w0) WHERE api = 251;

-- Who waits for whom, as the collector last saw it: a tree in the order of id, each row one deeper than what waits for it.
CREATE TABLE wait_state(
  id INTEGER PRIMARY KEY, depth INTEGER NOT NULL, text TEXT NOT NULL, process INTEGER NOT NULL, shown_rank INTEGER NOT NULL,
  in_cycle INTEGER NOT NULL, stuck INTEGER NOT NULL, again INTEGER NOT NULL, since_ns INTEGER NOT NULL,
  stack INTEGER NOT NULL, stack_is_address INTEGER NOT NULL
);

-- How each rank stands beside its peers: a row for each finding about slowness that names it, or one without
-- kind and code. lag_ns: its own time beyond that of its peers in `comm`, or what the job loses, in an iteration of length_ns.
-- trend: the same over iterations first to last, in equal parts, in percent of an iteration. coarse: times known to 1 ms.
CREATE TABLE speed_state(
  id INTEGER PRIMARY KEY, shown_rank INTEGER NOT NULL, process INTEGER NOT NULL, comm INTEGER NOT NULL,
  lag_ns INTEGER NOT NULL, wait_ns INTEGER NOT NULL, length_ns INTEGER NOT NULL, since INTEGER NOT NULL, period INTEGER NOT NULL,
  first INTEGER NOT NULL, last INTEGER NOT NULL, coarse INTEGER NOT NULL, kind TEXT NOT NULL, code TEXT NOT NULL, trend TEXT NOT NULL
);
