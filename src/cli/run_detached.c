/*
 * ward run -d: a sandbox that stays when this process has gone. In: the options of ward run. Out:
 * its id. A client of libward like any other program, but that its command line is the request: a
 * fresh ward-box reads it again, starts the sandbox and supervises it. What is wrong with the
 * policy ward-box says line by line on our standard error, which it has until the sandbox runs.
 */
#include "cli/run_detached.h"

#include "api/api.h"
#include "base/json.h"

static int tell(const struct options *o, const struct ward_box *b)
{
	auto_buf out = { 0 };
	struct json j = { .out = &out };

	if (o->json) {
		json_begin_object(&j, NULL);
		json_string(&j, "id", ward_box_id(b));
		json_string(&j, "name", o->name);
		json_end_object(&j);
	} else {
		buf_puts(&out, ward_box_id(b));
	}
	buf_puts(&out, "\n");
	return say_out(&out, EXIT_FINE);
}

int run_detached(const struct options *o)
{
	auto_strv words = { 0 };
	int refused = EXIT_REFUSED;
	const struct box_start how = { .program = "/proc/self/exe",
				       .words = &words,
				       .detached = true,
				       .keep_stdio = true,
				       .name = o->name,
				       .ret_code = &refused };
	struct ward_err e = { 0 };
	struct ward_box *b;
	int code;

	for (char **word = o->line; *word; word++)
		strv_add(&words, *word);
	if (box_start(&how, &b, &e) < 0)
		return say_error(&e, o->json, refused);
	code = tell(o, b);
	ward_box_free(b);
	return code;
}
