"""The SQLite tables. Documents are JSON; the ledger can only grow."""

DDL = """
CREATE TABLE IF NOT EXISTS objects (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    kind TEXT NOT NULL,
    id TEXT NOT NULL,
    doc TEXT NOT NULL,
    UNIQUE (kind, id)
);
CREATE INDEX IF NOT EXISTS objects_invoice ON objects (kind, json_extract(doc, '$.invoice'));
CREATE INDEX IF NOT EXISTS objects_customer ON objects (kind, json_extract(doc, '$.customer'));
CREATE INDEX IF NOT EXISTS objects_ticket ON objects (kind, json_extract(doc, '$.ticket'));
CREATE INDEX IF NOT EXISTS objects_number ON objects (kind, json_extract(doc, '$.number'));

-- Every state an object ever had: a stale read answers from here.
CREATE TABLE IF NOT EXISTS object_versions (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    object_seq INTEGER NOT NULL,
    kind TEXT NOT NULL,
    id TEXT NOT NULL,
    at REAL NOT NULL,
    doc TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS object_versions_kind ON object_versions (kind, object_seq);

CREATE TABLE IF NOT EXISTS ledger (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    at REAL NOT NULL,
    system TEXT NOT NULL,
    operation TEXT NOT NULL,
    objects TEXT NOT NULL,
    amount_minor INTEGER,
    currency TEXT,
    identity TEXT,
    wire_key TEXT,
    payload TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS ledger_identity ON ledger (identity);
CREATE TRIGGER IF NOT EXISTS ledger_no_update BEFORE UPDATE ON ledger
    BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
CREATE TRIGGER IF NOT EXISTS ledger_no_delete BEFORE DELETE ON ledger
    BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
-- INSERT OR REPLACE removes a row without firing the delete trigger.
CREATE TRIGGER IF NOT EXISTS ledger_no_replace BEFORE INSERT ON ledger
    WHEN EXISTS (SELECT 1 FROM ledger WHERE seq = NEW.seq)
    BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;

CREATE TABLE IF NOT EXISTS requests (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    at REAL NOT NULL,
    system TEXT NOT NULL,
    operation TEXT NOT NULL,
    method TEXT NOT NULL,
    path TEXT NOT NULL,
    params TEXT NOT NULL,
    wire_key TEXT,
    identity TEXT,
    fault TEXT,
    effect INTEGER NOT NULL DEFAULT 0,
    replayed INTEGER NOT NULL DEFAULT 0,
    status INTEGER
);

CREATE TABLE IF NOT EXISTS faults (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    operation TEXT NOT NULL,
    mode TEXT NOT NULL,
    match TEXT NOT NULL,
    params TEXT NOT NULL,
    remaining INTEGER,
    used INTEGER NOT NULL DEFAULT 0
);

-- status is null while a slow call holds the key; such a hold ends at running_until even if its process died.
CREATE TABLE IF NOT EXISTS keys (
    system TEXT NOT NULL,
    key TEXT NOT NULL,
    fingerprint TEXT NOT NULL,
    status INTEGER,
    headers TEXT NOT NULL DEFAULT '{}',
    body TEXT NOT NULL DEFAULT '{}',
    created_at REAL NOT NULL,
    retain_seconds REAL,
    running_until REAL NOT NULL DEFAULT 0,
    PRIMARY KEY (system, key)
);

CREATE TABLE IF NOT EXISTS deliveries (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    event TEXT NOT NULL,
    type TEXT NOT NULL,
    request_seq INTEGER,
    url TEXT NOT NULL,
    body TEXT NOT NULL,
    signing TEXT NOT NULL,
    fault TEXT,
    held INTEGER NOT NULL DEFAULT 0,
    due_at REAL NOT NULL,
    claimed_until REAL NOT NULL DEFAULT 0,
    state TEXT NOT NULL DEFAULT 'pending',
    attempts INTEGER NOT NULL DEFAULT 0,
    last_at REAL,
    last_status INTEGER,
    last_error TEXT
);
CREATE INDEX IF NOT EXISTS deliveries_due ON deliveries (state, due_at);

CREATE TABLE IF NOT EXISTS jobs (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    due_at REAL NOT NULL,
    kind TEXT NOT NULL,
    target TEXT NOT NULL,
    done INTEGER NOT NULL DEFAULT 0
);

CREATE TABLE IF NOT EXISTS settings (name TEXT PRIMARY KEY, value TEXT NOT NULL);
"""
