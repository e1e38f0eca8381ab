/*
 * Keys in the registry, from the command line: `ward token` without --host. In: the directory of
 * the server, whether one runs there or not. Out: a key that ends by itself, the list of keys and
 * tokens without their secrets, or one less. A server that runs sees the change with the next
 * request; connections of what was revoked end within a second.
 */
#include "daemon/setup.h"

#include <errno.h>
#include <string.h>

#include "base/io.h"
#include "base/text.h"
#include "daemon/control_access.h"

#define LIST_MOST 100000

static int open_registry(const struct setup *s, sqlite3 **ret, struct ward_err *e)
{
	char file[PATH_MAX + 32];

	snprintf(file, sizeof(file), "%s/registry.db", s->dir);
	return registry_open(file, ret, e);
}

static void put_json(const struct access_who *w, struct json *j)
{
	json_begin_object(j, NULL);
	json_string(j, "id", w->id);
	json_string(j, "kind", *w->parent ? "token" : "key");
	json_string(j, "owner", w->owner);
	json_string(j, "role", access_role_name(w->role));
	if (*w->name)
		json_string(j, "name", w->name);
	if (*w->sandbox)
		json_string(j, "sandboxID", w->sandbox);
	show_time(j, "createdAt", w->made_ms);
	if (w->expires_ms)
		show_time(j, "expiresAt", w->expires_ms);
	if (*w->hours)
		json_string(j, "hours", w->hours);
	json_end_object(j);
}

static void put_row(const struct access_who *w, struct buf *out)
{
	auto_buf owner = { 0 }, name = { 0 }, when = { 0 };
	struct json j = { .out = &when };

	text_escape(&owner, w->owner);
	text_escape(&name, *w->name ? w->name : "-");
	if (w->expires_ms)
		show_time(&j, NULL, w->expires_ms);
	buf_printf(out, "%-13s %-6s %-9s %-12s %-16s %.*s\n", w->id, *w->parent ? "token" : "key",
		   access_role_name(w->role), buf_text(&owner), buf_text(&name),
		   when.len > 2 ? (int)when.len - 2 : 5, when.len > 2 ? when.data + 1 : "never");
}

static int list(sqlite3 *db, const char *owner, bool as_json, struct ward_err *e)
{
	struct access_who *all = calloc(LIST_MOST, sizeof(*all));
	auto_buf out = { 0 };
	struct json j = { .out = &out };
	int n = all ? registry_list_credentials(db, *owner ? owner : ALL_OWNERS, all, LIST_MOST)
		    : -ENOMEM;

	if (as_json)
		json_begin_list(&j, "tokens");
	else
		buf_printf(&out, "%-13s %-6s %-9s %-12s %-16s %s\n", "ID", "KIND", "ROLE", "OWNER",
			   "NAME", "EXPIRES");
	for (int i = 0; i < n; i++)
		if (as_json)
			put_json(&all[i], &j);
		else
			put_row(&all[i], &out);
	if (as_json)
		json_end_list(&j);
	free(all);
	if (n < 0)
		return ward_fail(e, EIO, "the registry cannot be read");
	return io_write_all(STDOUT_FILENO, buf_text(&out), out.len) == 0 || errno == EPIPE
		       ? 0
		       : ward_fail_errno(e, "cannot write to standard output");
}

static int drop(sqlite3 *db, const char *id, struct ward_err *e)
{
	int n = registry_drop_credential(db, id);

	if (n > 0)
		return 0;
	if (n < 0)
		return ward_fail(e, EIO, "the registry cannot be written");
	ward_fail(e, ENOENT, "there is no key and no token with the id \"%.40s\"", id);
	return ward_remedy(e, "ward token ls lists them; use the --state of the server");
}

int setup_keys(struct setup *s, struct ward_err *e)
{
	sqlite3 *db = NULL;
	int r = open_registry(s, &db, e);

	if (r < 0)
		return r;
	r = s->drop_key ? drop(db, s->drop_key, e) : list(db, s->list_keys, s->json, e);
	sqlite3_close(db);
	return r;
}
