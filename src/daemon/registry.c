/*
 * What outlives wardd: a SQLite file. In: sandboxes. Out: the same after a restart; credentials
 * are in registry_access.c. Each change is one transaction in the write-ahead log; a sandbox is
 * written before it is started, so that one whose start was cut off is known and ended. Run by the
 * front, and once by wardd for a new key.
 */
#include <errno.h>
#include <string.h>

#include "daemon/front.h"

/* The number of a schema is its place here; those that are missing are run in order. */
static const char *const migrations[] = {
	"CREATE TABLE sandboxes (id TEXT PRIMARY KEY, owner TEXT NOT NULL, template TEXT NOT NULL,"
	" state INTEGER NOT NULL, started INTEGER NOT NULL, ends INTEGER NOT NULL,"
	" flags INTEGER NOT NULL, internet INTEGER NOT NULL, metadata TEXT, config BLOB) STRICT;"
	"CREATE TABLE keys (digest TEXT PRIMARY KEY, owner TEXT NOT NULL, made INTEGER NOT NULL)"
	" STRICT;",
	"ALTER TABLE sandboxes ADD COLUMN memory INTEGER NOT NULL DEFAULT 0;"
	"ALTER TABLE sandboxes ADD COLUMN disk INTEGER NOT NULL DEFAULT 0;"
	"ALTER TABLE sandboxes ADD COLUMN mask_host TEXT;",
	"CREATE TABLE snapshots (id TEXT PRIMARY KEY, owner TEXT NOT NULL, template TEXT NOT NULL,"
	" source TEXT NOT NULL, name TEXT NOT NULL, made INTEGER NOT NULL, bytes INTEGER NOT NULL,"
	" no_network INTEGER NOT NULL, config BLOB) STRICT;",
	"CREATE TABLE credentials (id TEXT PRIMARY KEY, digest TEXT NOT NULL UNIQUE,"
	" parent TEXT NOT NULL, owner TEXT NOT NULL, role TEXT NOT NULL, made INTEGER NOT NULL,"
	" expires INTEGER NOT NULL, name TEXT NOT NULL, sandbox TEXT NOT NULL,"
	" labels TEXT NOT NULL, templates TEXT NOT NULL, engines TEXT NOT NULL,"
	" sources TEXT NOT NULL, hours TEXT NOT NULL) STRICT;"
	"INSERT INTO credentials SELECT substr(digest, 1, 12), digest, '', owner, 'admin',"
	" made * 1000, 0, '', '', '', '', '', '', '' FROM keys; DROP TABLE keys;"
	"ALTER TABLE sandboxes ADD COLUMN engine TEXT NOT NULL DEFAULT '';",
};

enum {
	FLAG_AUTO_PAUSE = 1,
	FLAG_AUTO_RESUME = 2,
	FLAG_NO_NETWORK = 4,
	FLAG_PRIVATE = 8,
	FLAG_NETWORKED = 16,
	FLAG_PAUSE_FILES = 32,
	FLAG_ASKS = 64
};

static int fail(sqlite3 *db, const char *what)
{
	front_log_text("registry_error", what, sqlite3_errmsg(db));
	return -EIO;
}

static int migrate(sqlite3 *db, struct ward_err *e)
{
	sqlite3_stmt *s = NULL;
	int at = -1;

	if (sqlite3_prepare_v2(db, "PRAGMA user_version", -1, &s, NULL) == SQLITE_OK &&
	    sqlite3_step(s) == SQLITE_ROW)
		at = sqlite3_column_int(s, 0);
	sqlite3_finalize(s);
	if (at < 0)
		return ward_fail(e, EIO, "cannot read the registry: %s", sqlite3_errmsg(db));
	if (at > (int)ARRAY_LEN(migrations))
		return ward_fail(e, EINVAL, "the registry was written by a newer ward");
	for (; at < (int)ARRAY_LEN(migrations); at++) {
		char version[64];

		snprintf(version, sizeof(version), "PRAGMA user_version = %d; COMMIT", at + 1);
		if (sqlite3_exec(db, "BEGIN IMMEDIATE", NULL, NULL, NULL) != SQLITE_OK ||
		    sqlite3_exec(db, migrations[at], NULL, NULL, NULL) != SQLITE_OK ||
		    sqlite3_exec(db, version, NULL, NULL, NULL) != SQLITE_OK)
			return ward_fail(e, EIO, "cannot prepare the registry: %s",
					 sqlite3_errmsg(db));
	}
	return 0;
}

int registry_open(const char *file, sqlite3 **ret, struct ward_err *e)
{
	sqlite3 *db = NULL;
	int r;

	if (sqlite3_open_v2(file, &db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, NULL) !=
		    SQLITE_OK ||
	    sqlite3_busy_timeout(db, 5000) != SQLITE_OK ||
	    sqlite3_exec(db,
			 "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;"
			 " PRAGMA temp_store=MEMORY; PRAGMA mmap_size=0;",
			 NULL, NULL, NULL) != SQLITE_OK) {
		r = ward_fail(e, EIO, "cannot open the registry %s: %s", file,
			      db ? sqlite3_errmsg(db) : "out of memory");
		sqlite3_close(db);
		return r;
	}
	r = migrate(db, e);
	if (r < 0)
		sqlite3_close(db);
	else
		*ret = db;
	return r;
}

static void copy_text(sqlite3_stmt *s, int column, char *ret, size_t n)
{
	const unsigned char *text = sqlite3_column_text(s, column);

	snprintf(ret, n, "%s", text ? (const char *)text : "");
}

static void load_row(struct front *f, sqlite3_stmt *s)
{
	const unsigned char *metadata = sqlite3_column_text(s, 8),
			    *mask = sqlite3_column_text(s, 12);
	struct sandbox *b = sandbox_new(f);
	int flags = sqlite3_column_int(s, 6);

	if (!b)
		return;
	copy_text(s, 0, b->id, sizeof(b->id));
	copy_text(s, 1, b->owner, sizeof(b->owner));
	copy_text(s, 2, b->template, sizeof(b->template));
	b->state = (enum sandbox_state)sqlite3_column_int(s, 3);
	b->started_ms = sqlite3_column_int64(s, 4);
	b->end_ms = sqlite3_column_int64(s, 5);
	b->auto_pause = flags & FLAG_AUTO_PAUSE;
	b->auto_resume = flags & FLAG_AUTO_RESUME;
	b->no_network = flags & FLAG_NO_NETWORK;
	b->private_traffic = flags & FLAG_PRIVATE;
	b->networked = flags & FLAG_NETWORKED;
	b->asks = flags & FLAG_ASKS;
	b->pause_files = flags & FLAG_PAUSE_FILES;
	b->memory_mib = (unsigned)sqlite3_column_int(s, 10);
	b->disk_mib = (unsigned)sqlite3_column_int(s, 11);
	b->mask_host = mask ? strdup((const char *)mask) : NULL;
	copy_text(s, 13, b->engine, sizeof(b->engine));
	b->internet = sqlite3_column_int(s, 7);
	b->metadata = metadata ? strdup((const char *)metadata) : NULL;
	if (sqlite3_column_bytes(s, 9) > 0)
		buf_add(&b->config, sqlite3_column_blob(s, 9), (size_t)sqlite3_column_bytes(s, 9));
	sandbox_tokens(f, b);
}

int registry_load(struct front *f, struct ward_err *e)
{
	sqlite3_stmt *s = NULL;
	int r = sqlite3_prepare_v2(f->db,
				   "SELECT id, owner, template, state, started, ends, flags,"
				   " internet, metadata, config, memory, disk, mask_host,"
				   " engine"
				   " FROM sandboxes ORDER BY started",
				   -1, &s, NULL);

	while (r == SQLITE_OK || r == SQLITE_ROW) {
		r = sqlite3_step(s);
		if (r == SQLITE_ROW)
			load_row(f, s);
	}
	sqlite3_finalize(s);
	return r == SQLITE_DONE
		       ? 0
		       : ward_fail(e, EIO, "cannot read the registry: %s", sqlite3_errmsg(f->db));
}

int registry_put(struct front *f, const struct sandbox *b)
{
	sqlite3_stmt *s = NULL;
	int flags = (b->auto_pause ? FLAG_AUTO_PAUSE : 0) |
		    (b->auto_resume ? FLAG_AUTO_RESUME : 0) |
		    (b->no_network ? FLAG_NO_NETWORK : 0) |
		    (b->private_traffic ? FLAG_PRIVATE : 0) | (b->asks ? FLAG_ASKS : 0) |
		    (b->networked ? FLAG_NETWORKED : 0) | (b->pause_files ? FLAG_PAUSE_FILES : 0);
	int r = sqlite3_prepare_v2(
		f->db, "INSERT OR REPLACE INTO sandboxes VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?)", -1,
		&s, NULL);

	if (r != SQLITE_OK) {
		f->unsaved = true;
		return fail(f->db, "put");
	}
	sqlite3_bind_text(s, 1, b->id, -1, SQLITE_STATIC);
	sqlite3_bind_text(s, 2, b->owner, -1, SQLITE_STATIC);
	sqlite3_bind_text(s, 3, b->template, -1, SQLITE_STATIC);
	sqlite3_bind_int(s, 4, (int)b->state);
	sqlite3_bind_int64(s, 5, b->started_ms);
	sqlite3_bind_int64(s, 6, b->end_ms);
	sqlite3_bind_int(s, 7, flags);
	sqlite3_bind_int(s, 8, b->internet);
	sqlite3_bind_text(s, 9, b->metadata, -1, SQLITE_STATIC);
	sqlite3_bind_blob(s, 10, b->config.data, (int)b->config.len, SQLITE_STATIC);
	sqlite3_bind_int(s, 11, (int)b->memory_mib);
	sqlite3_bind_int(s, 12, (int)b->disk_mib);
	sqlite3_bind_text(s, 13, b->mask_host, -1, SQLITE_STATIC);
	sqlite3_bind_text(s, 14, b->engine, -1, SQLITE_STATIC);
	r = sqlite3_step(s);
	sqlite3_finalize(s);
	if (r == SQLITE_DONE)
		return 0;
	f->unsaved = true;
	return fail(f->db, "put");
}

int registry_begin(struct front *f)
{
	return sqlite3_exec(f->db, "BEGIN IMMEDIATE", NULL, NULL, NULL) == SQLITE_OK ? 0 : -EIO;
}

int registry_commit(struct front *f)
{
	return sqlite3_exec(f->db, "COMMIT", NULL, NULL, NULL) == SQLITE_OK ? 0
									    : fail(f->db, "commit");
}

void registry_roll_back(struct front *f)
{
	if (!sqlite3_get_autocommit(f->db))
		(void)sqlite3_exec(f->db, "ROLLBACK", NULL, NULL, NULL);
}

void registry_drop(struct front *f, const char *id)
{
	sqlite3_stmt *s = NULL;
	int r = sqlite3_prepare_v2(f->db, "DELETE FROM sandboxes WHERE id = ?", -1, &s, NULL);

	if (r == SQLITE_OK) {
		sqlite3_bind_text(s, 1, id, -1, SQLITE_STATIC);
		r = sqlite3_step(s);
	}
	sqlite3_finalize(s);
	if (r != SQLITE_DONE)
		(void)fail(f->db, "drop");
}
