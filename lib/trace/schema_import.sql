-- schema_import.sql: what processes of imported traces came from, and what their sources can't say.

CREATE TABLE imported(
  process INTEGER PRIMARY KEY,          -- a row of process; those that the preloaded shim watched have none
  format TEXT NOT NULL, title TEXT NOT NULL,
  file TEXT NOT NULL,                   -- the first that reported it
  lacks INTEGER NOT NULL                -- the bits of `lack`
);
CREATE TABLE lack(bit INTEGER PRIMARY KEY, name TEXT NOT NULL, what TEXT NOT NULL, codes TEXT NOT NULL);

-- What was not checked, of which rank, and why.
CREATE VIEW v_not_checked AS
  SELECT p.rank, i.process, l.codes, i.title || ' does not say ' || l.what AS why, i.format, i.file
  FROM imported i JOIN ranked_process p ON p.id = i.process JOIN lack l ON i.lacks & l.bit
  ORDER BY i.process, l.bit;
