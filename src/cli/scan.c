/*
 * ward scan: ward-scan (src/scan) does its work, because vectorscan is too large for ward. In: the
 * verb's options, read. Out: that program in place of this one.
 */
#include <errno.h>

#include "cli/cli.h"
#include "host/program.h"

static void add_option(struct strv *argv, const char *name, const char *value)
{
	if (!value)
		return;
	strv_add(argv, name);
	strv_add(argv, value);
}

static void add_flag(struct strv *argv, const char *name, bool set)
{
	if (set)
		strv_add(argv, name);
}

int verb_scan(struct options *o)
{
	struct ward_err e = { 0 };
	auto_strv argv = { 0 };

	if (o->list ? o->word_count > 0 : o->word_count == 0) {
		ward_fail(&e, EINVAL, o->list ? "--rules takes no path" : "a path is missing");
		ward_remedy(&e, "ward scan PATH..., or ward scan - for standard input");
		return say_usage(&e, o);
	}
	strv_add(&argv, "ward-scan");
	strv_add(&argv, o->list ? "rules" : "paths");
	add_flag(&argv, "--json", o->json);
	add_flag(&argv, "--quiet", o->quiet);
	add_flag(&argv, "--sarif", o->scan_sarif);
	add_flag(&argv, "--redact", o->scan_redact);
	add_flag(&argv, "--pii", o->scan_pii);
	add_flag(&argv, "--tracked", o->scan_tracked);
	add_option(&argv, "--severity", o->scan_severity);
	add_option(&argv, "--allow", o->scan_allow);
	add_option(&argv, "--baseline", o->scan_baseline);
	add_option(&argv, "--write-baseline", o->scan_write);
	strv_add(&argv, "--");
	for (size_t i = 0; i < o->word_count; i++)
		strv_add(&argv, o->words[i]);
	if (argv.failed)
		ward_fail(&e, ENOMEM, "out of memory");
	else
		(void)!program_become(argv.items, &e);
	return say_error(&e, o->json, EXIT_REFUSED);
}
