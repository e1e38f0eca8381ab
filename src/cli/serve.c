/*
 * ward serve: wardd (src/daemon) is the server, because SQLite and its parsers are nothing that a
 * run needs. In: the verb's options, read. Out: that program in place of this one.
 */
#include <errno.h>

#include "cli/cli.h"
#include "host/program.h"

static void add(struct strv *argv, const char *name, const char *value)
{
	if (!value)
		return;
	strv_add(argv, name);
	strv_add(argv, value);
}

int verb_serve(struct options *o)
{
	struct ward_err e = { 0 };
	auto_strv argv = { 0 };

	strv_add(&argv, "wardd");
	if (o->serve_dev)
		strv_add(&argv, "--dev");
	if (o->serve_debug)
		strv_add(&argv, "--debug");
	if (o->serve_tls_clients)
		strv_add(&argv, "--tls-clients");
	add(&argv, "--listen", o->serve_listen);
	add(&argv, "--templates", o->serve_templates);
	add(&argv, "--state", o->serve_state);
	add(&argv, "--max", o->serve_max);
	add(&argv, "--quota", o->serve_quota);
	add(&argv, "--snapshot-quota", o->serve_snapshot_quota);
	add(&argv, "--pool", o->serve_pool);
	add(&argv, "--warm", o->serve_warm);
	add(&argv, "--add-key", o->serve_add_key);
	add(&argv, "--role", o->serve_role);
	add(&argv, "--limits", o->serve_limits);
	add(&argv, "--rate", o->serve_rate);
	add(&argv, "--tls-dir", o->serve_tls_dir);
	if (argv.failed)
		ward_fail(&e, ENOMEM, "out of memory");
	else if (program_become(argv.items, &e) == -ENOENT)
		ward_remedy(&e, "install all files of ward; building wardd needs SQLite "
				"(libsqlite3-dev)");
	return say_error(&e, o->json, EXIT_REFUSED);
}
