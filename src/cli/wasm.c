/*
 * ward wasm: the code that `isolation: wasm` keeps. In: ls, or rm and names. Out: the list with
 * what each entry is and whether it is whole, or entries gone. Runs with the user's rights on the
 * user's own state directory. A sandbox that has an entry mounted keeps it.
 */
#include "cli/cli.h"

#include <errno.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/json.h"
#include "base/text.h"
#include "engine/wasm/wasm.h"
#include "policy/units.h"

#define NAME_DIGITS 20 /* of a name that are shown */
#define MODULE_DIGITS 12

static const char *const states[] = { [WASM_FINE] = "fine",
				      [WASM_NO_CODE] = "cannot be compiled",
				      [WASM_DAMAGED] = "damaged",
				      [WASM_UNFINISHED] = "unfinished" };

static void text_item(const struct wasm_item *i, struct buf *out)
{
	char size[32], day[16] = "", name[NAME_DIGITS + 1];
	struct tm when;

	snprintf(name, sizeof(name), "%.*s", NAME_DIGITS, i->name);
	units_format_size(i->bytes, size, sizeof(size));
	if (gmtime_r(&i->used, &when))
		strftime(day, sizeof(day), "%Y-%m-%d", &when);
	text_escape(out, name);
	buf_printf(out, "  module  %-*.*s %10s  %-10s  %s\n", MODULE_DIGITS, MODULE_DIGITS,
		   i->module, size, day, states[i->state]);
}

static void json_item(const struct wasm_item *i, struct json *j)
{
	json_begin_object(j, NULL);
	json_string(j, "name", i->name);
	json_string(j, "kind", "module");
	json_string(j, "module", i->module[0] ? i->module : NULL);
	json_uint(j, "bytes", i->bytes);
	json_uint(j, "used", (uint64_t)(i->used > 0 ? i->used : 0));
	json_string(j, "state", states[i->state]);
	json_end_object(j);
}

static int list(const struct options *o, const struct wasm_items *v)
{
	auto_buf out = { 0 };
	struct json j = { .out = &out };
	int code = EXIT_FINE;

	if (o->json)
		json_begin_list(&j, "entries");
	for (size_t i = 0; i < v->len; i++) {
		if (o->json)
			json_item(&v->items[i], &j);
		else
			text_item(&v->items[i], &out);
		if (v->items[i].state == WASM_DAMAGED)
			code = EXIT_FINDINGS;
	}
	if (o->json) {
		json_end_list(&j);
	} else if (!v->len) {
		buf_puts(&out, "there are no compiled modules; ward run --isolation wasm -- MODULE "
			       "compiles one\n");
	}
	return say_out(&out, code);
}

/* The one entry whose name begins so. */
static int find(const struct wasm_items *v, const char *word, size_t *ret, struct ward_err *e)
{
	size_t n = strlen(word), found = 0;

	for (size_t i = 0; i < v->len && n; i++)
		if (strncmp(v->items[i].name, word, n) == 0) {
			*ret = i;
			found++;
		}
	if (found == 1)
		return 0;
	ward_fail(e, found ? EINVAL : ENOENT,
		  found ? "%.100s: ambiguous, several entries begin with it"
			: "%.100s: no such entry",
		  word);
	return ward_remedy(e, "see ward wasm ls");
}

static int drop_one(int dir_fd, const char *name, const struct options *o, struct json *j,
		    struct ward_err *e)
{
	if (unlinkat(dir_fd, name, 0) < 0 && errno != ENOENT) {
		ward_fail_errno(e, "cannot remove %s", name);
		return say_error(e, o->json, EXIT_REFUSED);
	}
	if (o->json)
		json_string(j, NULL, name);
	else
		buf_printf(j->out, "removed %.*s\n", NAME_DIGITS, name);
	return EXIT_FINE;
}

static int drop(const struct options *o, const struct wasm_items *v, int dir_fd, struct ward_err *e)
{
	bool all = o->word_count == 2 && strcmp(o->words[1], "all") == 0;
	size_t count = all ? v->len : o->word_count - 1;
	auto_buf out = { 0 };
	struct json j = { .out = &out };
	int code = EXIT_FINE;

	if (o->json)
		json_begin_list(&j, "removed");
	for (size_t i = 0; i < count; i++) {
		size_t which = i;
		int r = all ? 0 : find(v, o->words[i + 1], &which, e);

		r = r < 0 ? say_error(e, o->json, EXIT_REFUSED)
			  : drop_one(dir_fd, v->items[which].name, o, &j, e);
		code = code ? code : r;
	}
	if (o->json)
		json_end_list(&j);
	return say_out(&out, code);
}

static int act(const struct options *o, bool ls, struct ward_err *e)
{
	struct wasm_code c = { .dir_fd = -1 };
	struct wasm_items v = { 0 };
	int r = wasm_store_open(&c, e);

	if (r >= 0)
		r = wasm_store_list(c.dir_fd, &v, e);
	r = r < 0 ? say_error(e, o->json, EXIT_REFUSED)
	    : ls  ? list(o, &v)
		  : drop(o, &v, c.dir_fd, e);
	free(v.items);
	wasm_store_close(&c);
	return r;
}

int verb_wasm(struct options *o)
{
	struct ward_err e = { 0 };
	bool ls = strcmp(o->words[0], "ls") == 0, rm = strcmp(o->words[0], "rm") == 0;

	if ((ls && o->word_count == 1) || (rm && o->word_count > 1))
		return act(o, ls, &e);
	if (rm)
		ward_fail(&e, EINVAL, "rm needs the name of an entry, or all");
	else if (ls)
		ward_fail(&e, EINVAL, "ls takes no name");
	else
		ward_fail(&e, EINVAL, "%.100s is neither ls nor rm", o->words[0]);
	ward_remedy(&e, "ward wasm ls, or ward wasm rm NAME...");
	return say_usage(&e, o);
}
