/*
 * ward volume: the caches and homes that outlive runs. In: ls, or rm and names. Out: the list with
 * sizes, or the volumes gone. Runs with the user's rights on the user's own state directory. A
 * volume that a sandbox uses is not removed.
 */
#include "cli/cli.h"

#include <errno.h>
#include <string.h>

#include "base/json.h"
#include "base/text.h"
#include "policy/units.h"
#include "state/volume.h"

static void text_item(const struct volume_item *i, struct buf *out)
{
	char size[32];

	units_format_size(i->bytes, size, sizeof(size));
	buf_printf(out, "%-44s %10s %8llu files%s", i->name, size, (unsigned long long)i->files,
		   i->in_use ? "  in use" : "");
	if (*i->workspace) {
		buf_puts(out, "  ");
		text_escape(out, i->workspace);
	}
	buf_puts(out, "\n");
}

static void json_item(const struct volume_item *i, struct json *j)
{
	json_begin_object(j, NULL);
	json_string(j, "name", i->name);
	json_string(j, "workspace", *i->workspace ? i->workspace : NULL);
	json_uint(j, "bytes", i->bytes);
	json_uint(j, "files", i->files);
	json_bool(j, "in_use", i->in_use);
	json_end_object(j);
}

static int list(const struct options *o, struct ward_err *e)
{
	struct volume_items v = { 0 };
	auto_buf out = { 0 };
	struct json j = { .out = &out };

	if (volume_list(&v, e) < 0)
		return say_error(e, o->json, EXIT_REFUSED);
	if (o->json)
		json_begin_list(&j, "volumes");
	for (size_t i = 0; i < v.len; i++) {
		if (o->json)
			json_item(&v.items[i], &j);
		else
			text_item(&v.items[i], &out);
	}
	if (o->json) {
		json_end_list(&j);
	} else if (!v.len) {
		buf_puts(&out, "there are no volumes; filesystem.caches and filesystem.home create "
			       "them\n");
	}
	volume_items_clear(&v);
	return say_out(&out, EXIT_FINE);
}

static int drop(const struct options *o, struct ward_err *e)
{
	auto_buf out = { 0 };
	struct json j = { .out = &out };
	int code = EXIT_FINE;

	if (o->json)
		json_begin_list(&j, "removed");
	for (size_t i = 1; i < o->word_count; i++) {
		if (volume_remove(o->words[i], e) < 0) {
			ward_remedy(e, e->code == EBUSY ? "end it first" : "see ward volume ls");
			code = say_error(e, o->json, EXIT_REFUSED);
		} else if (o->json) {
			json_string(&j, NULL, o->words[i]);
		} else {
			buf_printf(&out, "removed %s\n", o->words[i]);
		}
	}
	if (o->json)
		json_end_list(&j);
	return say_out(&out, code);
}

int verb_volume(struct options *o)
{
	struct ward_err e = { 0 };
	bool ls = strcmp(o->words[0], "ls") == 0, rm = strcmp(o->words[0], "rm") == 0;

	if ((ls && o->word_count == 1) || (rm && o->word_count > 1))
		return ls ? list(o, &e) : drop(o, &e);
	if (rm)
		ward_fail(&e, EINVAL, "rm needs the name of a volume");
	else if (ls)
		ward_fail(&e, EINVAL, "ls takes no name");
	else
		ward_fail(&e, EINVAL, "%.100s is neither ls nor rm", o->words[0]);
	ward_remedy(&e, "ward volume ls, or ward volume rm NAME...");
	return say_usage(&e, o);
}
