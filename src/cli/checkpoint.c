/*
 * ward checkpoint: what detached sandboxes were at one moment. In: a sandbox and a name; or ls; or
 * rm and names. Out: a checkpoint more, the list, or some less. Runs with the user's rights on the
 * user's own state directory. ward run --restore goes on from one.
 */
#include "cli/checkpoint.h"

#include <errno.h>
#include <string.h>
#include <time.h>

#include "base/json.h"
#include "base/text.h"
#include "cli/tell.h"
#include "event/event.h"
#include "policy/units.h"

static void tell(const char *name, const char *change, uint64_t bytes, const char *box)
{
	struct ward_event v = event_make(EVENT_STATE, ACTION_ALLOW, name);

	event_text(&v, FIELD_CHANGE, change);
	event_text(&v, FIELD_NAME, box);
	if (bytes)
		event_number(&v, FIELD_BYTES, bytes);
	tell_done(&v);
}

static int make(const struct options *o, struct ward_err *e)
{
	struct checkpoint c = { 0 };
	struct json j;
	auto_buf out = { 0 };
	char size[32];
	int r = checkpoint_make(o->words[0], o->words[1], o->stop, &c, e);

	if (r == 0) {
		tell(c.name, "checkpoint", c.bytes, c.box);
		j = (struct json){ .out = &out };
		if (o->json) {
			json_begin_object(&j, NULL);
			json_string(&j, "name", c.name);
			json_string(&j, "box", c.box);
			json_uint(&j, "bytes", c.bytes);
			json_bool(&j, "stopped", o->stop);
			json_end_object(&j);
		} else {
			units_format_size(c.bytes, size, sizeof(size));
			buf_printf(&out,
				   "%s (%s); to continue from it: ward run --isolation gvisor "
				   "--restore %s, with the options of the sandbox",
				   c.name, size, c.name);
		}
		buf_puts(&out, "\n");
	}
	checkpoint_clear(&c);
	return r < 0 ? say_error(e, o->json, EXIT_REFUSED) : say_out(&out, EXIT_FINE);
}

static void text_item(const struct checkpoint *c, const char *damage, struct buf *out)
{
	char size[32], day[32] = "";
	time_t made = (time_t)(c->created_ms / 1000);
	struct tm when;

	units_format_size(c->bytes, size, sizeof(size));
	if (c->created_ms && gmtime_r(&made, &when))
		strftime(day, sizeof(day), "%Y-%m-%d %H:%M", &when);
	buf_printf(out, "%-24s %10s  %-16s  ", c->name, size, day);
	if (damage)
		buf_printf(out, "damaged: %s",
			   strstr(damage, ": ") ? strstr(damage, ": ") + 2 : damage);
	else if (!c->command.len)
		buf_puts(out, "(idle)");
	else
		text_escape(out, c->command.items[0]);
	if (c->workspace) {
		buf_puts(out, "  ");
		text_escape(out, c->workspace);
	}
	buf_puts(out, "\n");
}

static void json_item(const struct checkpoint *c, const char *damage, struct json *j)
{
	char digest[SHA256_HEX] = "";

	if (c->same)
		sha256_hex(c->same, strlen(c->same), digest);
	json_begin_object(j, NULL);
	json_string(j, "name", c->name);
	json_string(j, "box", c->box[0] ? c->box : NULL);
	json_uint(j, "bytes", c->bytes);
	json_uint(j, "created_ms", c->created_ms);
	json_string(j, "workspace", c->workspace);
	json_begin_array(j, "command");
	for (size_t i = 0; i < c->command.len; i++)
		json_string(j, NULL, c->command.items[i]);
	json_end_array(j);
	json_string(j, "policy", digest[0] ? digest : NULL);
	json_string(j, "damage", damage);
	json_end_object(j);
}

static int list(const struct options *o, struct ward_err *e)
{
	struct checkpoints v = { 0 };
	auto_buf out = { 0 };
	struct json j = { .out = &out };
	int code = EXIT_FINE;

	if (checkpoint_list(&v, e) < 0)
		return say_error(e, o->json, EXIT_REFUSED);
	if (o->json) {
		json_begin_object(&j, NULL);
		json_begin_array(&j, "checkpoints");
	}
	for (size_t i = 0; i < v.len; i++) {
		struct ward_err why = { 0 };
		const char *damage = NULL;

		if (!v.items[i].image[0])
			damage = "cannot read its record";
		else if (checkpoint_verify(&v.items[i], false, &why) < 0)
			damage = why.why;
		if (o->json)
			json_item(&v.items[i], damage, &j);
		else if (o->quiet)
			buf_printf(&out, "%s\n", v.items[i].name);
		else
			text_item(&v.items[i], damage, &out);
		code = damage ? EXIT_FINDINGS : code;
	}
	if (o->json) {
		json_end_array(&j);
		json_end_object(&j);
		buf_puts(&out, "\n");
	} else if (!v.len && !o->quiet) {
		buf_puts(&out, "there are no checkpoints; to make one: ward checkpoint BOX NAME\n");
	}
	checkpoints_clear(&v);
	return say_out(&out, code);
}

static int drop(const struct options *o)
{
	auto_buf out = { 0 };
	struct json j = { .out = &out };
	int code = EXIT_FINE;

	if (o->json) {
		json_begin_object(&j, NULL);
		json_begin_array(&j, "removed");
	}
	for (size_t i = 1; i < o->word_count; i++) {
		struct ward_err e = { 0 };

		if (checkpoint_remove(o->words[i], &e) < 0) {
			code = say_error(&e, o->json, EXIT_REFUSED);
			continue;
		}
		tell(o->words[i], "delete", 0, NULL);
		if (o->json)
			json_string(&j, NULL, o->words[i]);
		else
			buf_printf(&out, "removed %s\n", o->words[i]);
	}
	if (o->json) {
		json_end_array(&j);
		json_end_object(&j);
		buf_puts(&out, "\n");
	}
	return say_out(&out, code);
}

int verb_checkpoint(struct options *o)
{
	struct ward_err e = { 0 };
	bool ls = strcmp(o->words[0], "ls") == 0, rm = strcmp(o->words[0], "rm") == 0;

	if (o->stop && (ls || rm))
		ward_fail(&e, EINVAL, "--stop only works when making a checkpoint");
	else if (o->quiet && !ls)
		ward_fail(&e, EINVAL, "--quiet only works with ls");
	else if (ls && o->word_count == 1)
		return list(o, &e);
	else if (rm && o->word_count > 1)
		return drop(o);
	else if (!ls && !rm && o->word_count == 2)
		return make(o, &e);
	else
		ward_fail(&e, EINVAL,
			  ls                  ? "ls takes no name"
			  : rm                ? "rm needs the name of a checkpoint"
			  : o->word_count < 2 ? "missing name for the checkpoint"
					      : "too many arguments");
	ward_remedy(&e,
		    "ward checkpoint BOX NAME, ward checkpoint ls, or ward checkpoint rm NAME...");
	return say_usage(&e, o);
}
