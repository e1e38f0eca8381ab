/*
 * Snapshots in the registry. In: those that are whole. Out: the same after a restart. Run by the
 * front.
 */
#include <errno.h>
#include <string.h>

#include "daemon/snapshot.h"

static int fail(sqlite3 *db, const char *what)
{
	front_log_text("registry_error", what, sqlite3_errmsg(db));
	return -EIO;
}

static void copy_text(sqlite3_stmt *s, int column, char *ret, size_t n)
{
	const unsigned char *text = sqlite3_column_text(s, column);

	snprintf(ret, n, "%s", text ? (const char *)text : "");
}

static void load_row(struct front *f, sqlite3_stmt *s)
{
	struct snapshot *n = calloc(1, sizeof(*n));

	if (!n)
		return;
	copy_text(s, 0, n->id, sizeof(n->id));
	copy_text(s, 1, n->owner, sizeof(n->owner));
	copy_text(s, 2, n->template, sizeof(n->template));
	copy_text(s, 3, n->source, sizeof(n->source));
	copy_text(s, 4, n->name, sizeof(n->name));
	n->made_ms = sqlite3_column_int64(s, 5);
	n->bytes = (uint64_t)sqlite3_column_int64(s, 6);
	n->no_network = sqlite3_column_int(s, 7);
	if (sqlite3_column_bytes(s, 8) > 0)
		buf_add(&n->config, sqlite3_column_blob(s, 8), (size_t)sqlite3_column_bytes(s, 8));
	n->state = SNAPSHOT_READY;
	snapshot_add(f, n);
}

int registry_load_snapshots(struct front *f, struct ward_err *e)
{
	sqlite3_stmt *s = NULL;
	int r = sqlite3_prepare_v2(f->db,
				   "SELECT id, owner, template, source, name, made, bytes,"
				   " no_network, config FROM snapshots ORDER BY made",
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

int registry_put_snapshot(struct front *f, const struct snapshot *n)
{
	sqlite3_stmt *s = NULL;

	if (sqlite3_prepare_v2(f->db, "INSERT OR REPLACE INTO snapshots VALUES (?,?,?,?,?,?,?,?,?)",
			       -1, &s, NULL) != SQLITE_OK)
		return fail(f->db, "put_snapshot");
	sqlite3_bind_text(s, 1, n->id, -1, SQLITE_STATIC);
	sqlite3_bind_text(s, 2, n->owner, -1, SQLITE_STATIC);
	sqlite3_bind_text(s, 3, n->template, -1, SQLITE_STATIC);
	sqlite3_bind_text(s, 4, n->source, -1, SQLITE_STATIC);
	sqlite3_bind_text(s, 5, n->name, -1, SQLITE_STATIC);
	sqlite3_bind_int64(s, 6, n->made_ms);
	sqlite3_bind_int64(s, 7, (sqlite3_int64)n->bytes);
	sqlite3_bind_int(s, 8, n->no_network);
	sqlite3_bind_blob(s, 9, n->config.data, (int)n->config.len, SQLITE_STATIC);
	if (sqlite3_step(s) != SQLITE_DONE) {
		sqlite3_finalize(s);
		return fail(f->db, "put_snapshot");
	}
	sqlite3_finalize(s);
	return 0;
}

void registry_drop_snapshot(struct front *f, const char *id)
{
	sqlite3_stmt *s = NULL;
	int r = sqlite3_prepare_v2(f->db, "DELETE FROM snapshots WHERE id = ?", -1, &s, NULL);

	if (r == SQLITE_OK) {
		sqlite3_bind_text(s, 1, id, -1, SQLITE_STATIC);
		r = sqlite3_step(s);
	}
	sqlite3_finalize(s);
	if (r != SQLITE_DONE)
		(void)fail(f->db, "drop_snapshot");
}
