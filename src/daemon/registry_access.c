/*
 * Credentials in the registry: keys of owners, and tokens that were made with keys. In: a secret
 * that a client shows, or an id. Out: what may be done with it (access.h). Secrets are not kept,
 * only their SHA-256: they are 160 random bits, so a slow hash would add nothing, and how long it
 * takes to find a digest says nothing about the secret. Run by the front, and once by wardd for a
 * new key.
 */
#include <errno.h>
#include <string.h>

#include "base/sha256.h"
#include "daemon/control_access.h"

#define COLUMNS                                                                                    \
	"id, parent, owner, role, made, expires, name, sandbox, labels, templates, engines,"       \
	" sources, hours"

static void text(sqlite3_stmt *s, int column, char *ret, size_t n)
{
	const unsigned char *t = sqlite3_column_text(s, column);

	snprintf(ret, n, "%s", t ? (const char *)t : "");
}

static void take_row(sqlite3_stmt *s, struct access_who *w)
{
	char role[32];

	memset(w, 0, sizeof(*w));
	text(s, 0, w->id, sizeof(w->id));
	text(s, 1, w->parent, sizeof(w->parent));
	text(s, 2, w->owner, sizeof(w->owner));
	text(s, 3, role, sizeof(role));
	w->role = access_role_find(role);
	w->made_ms = sqlite3_column_int64(s, 4);
	w->expires_ms = sqlite3_column_int64(s, 5);
	text(s, 6, w->name, sizeof(w->name));
	text(s, 7, w->sandbox, sizeof(w->sandbox));
	text(s, 8, w->labels, sizeof(w->labels));
	text(s, 9, w->templates, sizeof(w->templates));
	text(s, 10, w->engines, sizeof(w->engines));
	text(s, 11, w->sources, sizeof(w->sources));
	text(s, 12, w->hours, sizeof(w->hours));
}

static bool find(sqlite3 *db, const char *sql, const char *value, struct access_who *ret)
{
	sqlite3_stmt *s = NULL;
	bool found = false;

	if (sqlite3_prepare_v2(db, sql, -1, &s, NULL) == SQLITE_OK) {
		sqlite3_bind_text(s, 1, value, -1, SQLITE_STATIC);
		found = sqlite3_step(s) == SQLITE_ROW;
		if (found)
			take_row(s, ret);
	}
	sqlite3_finalize(s);
	return found;
}

/* A token without the key that made it is none. */
static bool with_parent(sqlite3 *db, struct credential *c)
{
	c->derived = *c->own.parent;
	return !c->derived || find(db, "SELECT " COLUMNS " FROM credentials WHERE id = ?",
				   c->own.parent, &c->parent);
}

bool registry_find_secret(sqlite3 *db, const char *secret, struct credential *ret)
{
	char digest[SHA256_HEX];

	sha256_hex(secret, strlen(secret), digest);
	return find(db, "SELECT " COLUMNS " FROM credentials WHERE digest = ?", digest,
		    &ret->own) &&
	       with_parent(db, ret);
}

bool registry_find_credential(sqlite3 *db, const char *id, struct credential *ret)
{
	return find(db, "SELECT " COLUMNS " FROM credentials WHERE id = ?", id, &ret->own) &&
	       with_parent(db, ret);
}

int registry_add_credential(sqlite3 *db, const char *secret, const struct access_who *w)
{
	char digest[SHA256_HEX];
	sqlite3_stmt *s = NULL;
	int r;

	sha256_hex(secret, strlen(secret), digest);
	r = sqlite3_prepare_v2(db,
			       "INSERT INTO credentials VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?)"
			       " ON CONFLICT(digest) DO NOTHING",
			       -1, &s, NULL);
	if (r == SQLITE_OK) {
		const char *const texts[] = { w->id, digest, w->parent, w->owner,
					      access_role_name(w->role) };
		const char *const limits[] = { w->name,    w->sandbox, w->labels, w->templates,
					       w->engines, w->sources, w->hours };

		for (int i = 0; i < 5; i++)
			sqlite3_bind_text(s, i + 1, texts[i], -1, SQLITE_STATIC);
		sqlite3_bind_int64(s, 6, w->made_ms);
		sqlite3_bind_int64(s, 7, w->expires_ms);
		for (int i = 0; i < 7; i++)
			sqlite3_bind_text(s, i + 8, limits[i], -1, SQLITE_STATIC);
		r = sqlite3_step(s);
	}
	sqlite3_finalize(s);
	return r == SQLITE_DONE ? 0 : -EIO;
}

int registry_list_credentials(sqlite3 *db, const char *owner, struct access_who *ret, size_t most)
{
	sqlite3_stmt *s = NULL;
	int n = -EIO;

	if (sqlite3_prepare_v2(db,
			       "SELECT " COLUMNS " FROM credentials WHERE owner = ?1 OR ?1 = '*'"
			       " ORDER BY made, id",
			       -1, &s, NULL) == SQLITE_OK) {
		sqlite3_bind_text(s, 1, owner, -1, SQLITE_STATIC);
		for (n = 0; (size_t)n < most && sqlite3_step(s) == SQLITE_ROW; n++)
			take_row(s, &ret[n]);
	}
	sqlite3_finalize(s);
	return n;
}

static int change(sqlite3 *db, const char *sql, const char *value, int64_t number)
{
	sqlite3_stmt *s = NULL;
	int r = sqlite3_prepare_v2(db, sql, -1, &s, NULL);

	if (r == SQLITE_OK) {
		sqlite3_bind_text(s, 1, value, -1, SQLITE_STATIC);
		sqlite3_bind_int64(s, 2, number);
		r = sqlite3_step(s);
	}
	sqlite3_finalize(s);
	return r == SQLITE_DONE ? sqlite3_changes(db) : -EIO;
}

int registry_drop_credential(sqlite3 *db, const char *id)
{
	return change(db, "DELETE FROM credentials WHERE id = ?1 OR parent = ?1", id, 0);
}

int registry_drop_expired(sqlite3 *db, const char *owner, int64_t now_ms)
{
	return change(db,
		      "DELETE FROM credentials WHERE owner = ?1 AND expires > 0 AND expires < ?2",
		      owner, now_ms);
}
