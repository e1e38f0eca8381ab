/*
 * ward token: keys of ward serve. In: create, ls or revoke, and what they take. Out: wardd in place
 * of this program, because it has the registry. With --host, ward-remote does it (main.c).
 */
#include <errno.h>
#include <string.h>

#include "cli/cli.h"
#include "host/program.h"
#include "policy/units.h"

static void add(struct strv *argv, const char *name, const char *value)
{
	if (!value)
		return;
	strv_add(argv, name);
	strv_add(argv, value);
}

static int add_create(const struct options *o, struct strv *argv, struct ward_err *e)
{
	uint64_t ms = 0;

	if (!o->serve_add_key || !o->serve_role || !o->serve_ttl ||
	    units_parse_seconds(o->serve_ttl, &ms) < 0 || ms < 1000) {
		ward_fail(e, EINVAL,
			  "create needs an owner, a role, and a time of a second or more");
		return ward_remedy(e, "for instance ward token create --owner ci --role runner "
				      "--ttl 15m; a key without an end: ward serve --add-key");
	}
	add(argv, "--add-key", o->serve_add_key);
	add(argv, "--role", o->serve_role);
	add(argv, "--limits", o->serve_limits);
	add(argv, "--key-name", o->name);
	strv_add(argv, "--ttl");
	strv_addf(argv, "%llu", (unsigned long long)ms / 1000);
	return 0;
}

static int read_words(const struct options *o, struct strv *argv, struct ward_err *e)
{
	const char *what = o->words[0];
	bool with_id = strcmp(what, "revoke") == 0;

	if (o->word_count != (with_id ? 2 : 1) ||
	    (!with_id && strcmp(what, "create") != 0 && strcmp(what, "ls") != 0))
		return ward_fail(e, EINVAL,
				 "ward token create, ward token ls, or ward token "
				 "revoke ID");
	if (strcmp(what, "create") == 0)
		return add_create(o, argv, e);
	if (o->serve_role || o->serve_ttl || o->serve_limits || o->name)
		return ward_fail(e, EINVAL,
				 "--role, --ttl, --limits and --name are about a new "
				 "key: ward token create");
	if (with_id)
		add(argv, "--drop-key", o->words[1]);
	else
		add(argv, "--list-keys", o->serve_add_key ? o->serve_add_key : "");
	return 0;
}

int verb_token(struct options *o)
{
	struct ward_err e = { 0 };
	auto_strv argv = { 0 };

	strv_add(&argv, "wardd");
	if (read_words(o, &argv, &e) < 0)
		return say_usage(&e, o);
	add(&argv, "--state", o->serve_state);
	if (o->json)
		strv_add(&argv, "--json");
	if (argv.failed)
		ward_fail(&e, ENOMEM, "out of memory");
	else if (program_become(argv.items, &e) == -ENOENT)
		ward_remedy(&e, "install all files of ward; building wardd needs SQLite "
				"(libsqlite3-dev)");
	return say_error(&e, o->json, EXIT_REFUSED);
}
