/*
 * ward quarantine: what sweeps moved out of workspaces. In: ls, show or restore, a run, paths. Out:
 * the list, one thing (quarantine_show.c), or the things back in their places. Runs with the user's
 * rights on the user's own state directory; names in it were chosen by an agent, so they are
 * printed escaped.
 */
#include "cli/cli.h"
#include "cli/quarantine.h"
#include "cli/tell.h"

#include <errno.h>
#include <string.h>

#include "base/json.h"
#include "base/path.h"
#include "base/text.h"
#include "event/event.h"
#include "state/store.h"

static void json_item(struct json *j, const struct store_item *i)
{
	json_begin_object(j, NULL);
	json_string(j, "run", i->run);
	json_string(j, "workspace", i->workspace);
	json_string(j, "root", i->root);
	json_string(j, "path", i->path);
	json_string(j, "why", i->why);
	json_end_object(j);
}

static bool is_wanted(const struct store_item *i, const char *run, char *const *paths)
{
	if (run && strcmp(i->run, run) != 0)
		return false;
	for (size_t p = 0; paths && paths[p]; p++)
		if (strcmp(paths[p], i->path) == 0)
			return true;
	return !paths || !paths[0];
}

static int list(const struct options *o, const struct store_items *v)
{
	const char *run = o->word_count > 1 ? o->words[1] : NULL, *last = "";
	auto_free char *cwd = o->all || run ? NULL : realpath(".", NULL);
	bool everywhere = o->all || run;
	size_t elsewhere = 0;
	auto_buf out = { 0 };
	struct json j = { .out = &out };

	if (o->json)
		json_begin_list(&j, "quarantine");
	for (size_t i = 0; i < v->len; i++) {
		const struct store_item *item = &v->items[i];

		if (!is_wanted(item, run, NULL))
			continue;
		if (!everywhere && !(cwd && path_is_beneath(cwd, item->workspace))) {
			elsewhere++;
			continue;
		}
		if (o->json) {
			json_item(&j, item);
			continue;
		}
		if (strcmp(last, item->run) != 0) {
			buf_printf(&out, "%s%s  ", *last ? "\n" : "", item->run);
			text_escape(&out, item->workspace);
			buf_puts(&out, "\n");
		}
		last = item->run;
		buf_puts(&out, "  ");
		if (strcmp(item->root, item->workspace) != 0) {
			text_escape(&out, item->root);
			buf_puts(&out, "/");
		}
		text_escape(&out, item->path);
		buf_puts(&out, ": ");
		text_escape(&out, item->why);
		buf_puts(&out, "\n");
	}
	if (o->json) {
		json_end_list(&j);
	} else if (!out.len && elsewhere) {
		buf_printf(&out,
			   "the quarantine is empty for this directory; other directories have %zu "
			   "entries: ward quarantine ls --all\n",
			   elsewhere);
	} else if (!out.len) {
		buf_puts(&out, "the quarantine is empty\n");
	}
	return say_out(&out, EXIT_FINE);
}

/* The run that is meant when none is named: the last one of the workspace that we stand in. */
static const char *last_run(const struct store_items *v)
{
	auto_free char *cwd = realpath(".", NULL);

	for (size_t i = v->len; cwd && i-- > 0;)
		if (path_is_beneath(cwd, v->items[i].workspace))
			return v->items[i].run;
	return NULL;
}

static bool is_run(const struct store_items *v, const char *word)
{
	for (size_t i = 0; i < v->len; i++)
		if (strcmp(v->items[i].run, word) == 0)
			return true;
	return false;
}

static int fail_missing(const struct options *o, const char *run, struct ward_err *e)
{
	if (run)
		ward_fail(e, ENOENT, "no such entry in the quarantine of %s", run);
	else
		ward_fail(e, ENOENT, "the quarantine is empty for this directory");
	ward_remedy(e, "see ward quarantine ls");
	return say_error(e, o->json, EXIT_REFUSED);
}

static int restore(const struct options *o, const struct store_items *v, struct ward_err *e)
{
	bool named = o->word_count > 1 && is_run(v, o->words[1]);
	const char *run = named ? o->words[1] : last_run(v);
	char *const *paths = o->words + (named ? 2 : 1);
	auto_buf out = { 0 };
	struct json j = { .out = &out };
	size_t count = 0;
	int code = EXIT_FINE;

	if (o->json)
		json_begin_list(&j, "restored");
	for (size_t i = 0; run && i < v->len; i++) {
		auto_free char *where = NULL;
		struct ward_event event;

		if (!is_wanted(&v->items[i], run, paths))
			continue;
		count++;
		if (store_restore(&v->items[i], o->to, &where, e) < 0) {
			code = say_error(e, o->json, EXIT_REFUSED);
			continue;
		}
		event = event_make(EVENT_FILE_RESTORE, ACTION_ALLOW, v->items[i].path);
		event.run = v->items[i].run;
		event_text(&event, FIELD_TO, where);
		event_text(&event, FIELD_WHY, v->items[i].why);
		tell_done(&event);
		if (o->json) {
			json_string(&j, NULL, where);
			continue;
		}
		buf_puts(&out, "restored ");
		text_escape(&out, where);
		buf_puts(&out, ": ");
		text_escape(&out, v->items[i].why);
		buf_puts(&out, "\n");
	}
	if (!count)
		return fail_missing(o, run, e);
	if (o->json)
		json_end_list(&j);
	return say_out(&out, code);
}

/* One row a word: how many words may follow it, which options belong to it. */
static const struct part {
	const char *name, *usage;
	size_t least, most;
	bool takes_to, takes_all;
} parts[] = {
	{ "ls", "ward quarantine ls [RUN]", 0, 1, false, true },
	{ "show", "ward quarantine show RUN PATH", 2, 2, false, false },
	{ "restore", "ward quarantine restore [RUN] [PATH...]", 0, SIZE_MAX, true, false },
};

static const struct part *find_part(const struct options *o, struct ward_err *e)
{
	size_t words = o->word_count - 1;

	for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
		const struct part *p = &parts[i];

		if (strcmp(o->words[0], p->name) != 0)
			continue;
		if (words < p->least || words > p->most)
			ward_fail(e, EINVAL, "wrong number of arguments (%zu) for %s", words,
				  p->name);
		else if (o->to && !p->takes_to)
			ward_fail(e, EINVAL, "--to only works with restore");
		else if (o->all && (!p->takes_all || words))
			ward_fail(e, EINVAL, "--all only works with ls and no run");
		else
			return p;
		ward_remedy(e, "%s", p->usage);
		return NULL;
	}
	ward_fail(e, EINVAL, "%.100s is neither ls, show nor restore", o->words[0]);
	ward_remedy(e, "%s, %s, or %s", parts[0].usage, parts[1].usage, parts[2].usage);
	return NULL;
}

int verb_quarantine(struct options *o)
{
	struct store_items items = { 0 };
	struct ward_err e = { 0 };
	const struct part *p = find_part(o, &e);
	int code;

	if (!p)
		return say_usage(&e, o);
	if (store_list(&items, &e) < 0)
		return say_error(&e, o->json, EXIT_REFUSED);
	if (p == &parts[0])
		code = list(o, &items);
	else
		code = p == &parts[1] ? quarantine_show(o, &items, &e) : restore(o, &items, &e);
	store_items_clear(&items);
	return code;
}
