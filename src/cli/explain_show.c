/*
 * ward explain: what a run was refused. In: its journal. Out: each refusal once, with what decided
 * and the change of the policy that would allow it, as text or JSON. Everything that a sandbox
 * chose is escaped. Run by ward-explain.
 */
#include "cli/explain_parts.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "observe/advice.h"
#include "base/text.h"
#include "event/event.h"
#include "plan/spec.h"
#include "policy/units.h"

#define GROUPS_MAX 256 /* different refusals that are shown one by one */

/* The same thing, refused once or often. */
struct group {
	uint64_t seq, count;
	uint8_t kind;
	struct explanation x;
	struct buf command, option;
};

/* What would allow it, as a change of the policy and as options. */
static void add_ways(struct group *g, const struct explain_source *s)
{
	explain_command(&g->x, &s->about, &g->command);
	advice_option(g->x.changes, g->x.change_count, s->policy_file, &g->option);
}

struct collected {
	const struct explain_source *source;
	struct group *groups; /* owned */
	size_t len;
	uint64_t more; /* that had no room */
};

static char *text_of(const struct ward_event *v, enum event_field f)
{
	const struct event_value *value = event_get(v, f);

	return value && value->len ? strndup(value->text, value->len) : NULL;
}

/* Whether a policy file, as it is now, gives no network; one that is not there gives none. */
static bool is_network_off(const char *file)
{
	struct policy_errors errors = { 0 };
	struct ward_err ignored = { 0 };
	struct policy p = { 0 };
	bool off = policy_defaults(&p, &ignored) == 0 &&
		   (!file || spec_read_policy(file, &p, &errors, &ignored) == 0) &&
		   p.net_mode == NET_MODE_NONE;

	strv_free(&errors.lines);
	policy_clear(&p);
	return off;
}

int explain_open(int audit_fd, const char *word, struct explain_source *ret, struct ward_err *e)
{
	static char scratch[EVENT_LINE_MAX];
	auto_free char *engine = NULL;
	struct ward_event v;
	int r;

	*ret = (struct explain_source){ 0 };
	r = audit_find_run(audit_fd, word, &ret->run, e);
	if (r < 0)
		return r;
	v = event_make(EVENT_RUN_NOTE, ACTION_LOG, NULL);
	if (audit_first(audit_fd, ret->run, scratch, &v)) {
		ret->workspace = text_of(&v, FIELD_WORKSPACE);
		ret->policy_file = text_of(&v, FIELD_POLICY);
		engine = text_of(&v, FIELD_ENGINE);
		ret->unseen = unseen_behind(engine);
	}
	ret->about = (struct explain_run){ .workspace = ret->workspace,
					   .policy_file = ret->policy_file,
					   .home = getenv("HOME"),
					   .network_off = !event_get(&v, FIELD_PROFILE) &&
							  is_network_off(ret->policy_file) };
	return 0;
}

void explain_close(struct explain_source *s)
{
	free(s->run);
	free(s->workspace);
	free(s->policy_file);
	*s = (struct explain_source){ 0 };
}

void explain_events(int audit_fd, const char *run,
		    bool (*see)(void *ctx, const struct ward_event *v), void *ctx)
{
	static char scratch[EVENT_LINE_MAX];
	auto_strv files = { 0 };
	bool live, going = true;

	lines_files(audit_fd, run, &files, &live);
	for (size_t i = 0; i < files.len && going; i++) {
		const char *line;
		struct ward_event v;
		struct lines l;
		size_t n;

		if (lines_open(&l, audit_fd, files.items[i]) < 0)
			continue;
		while (going && lines_next(&l, &line, &n) > 0)
			if (event_decode(line, n, scratch, &v, NULL))
				going = see(ctx, &v);
		lines_close(&l);
	}
}

static uint64_t count_of(const struct ward_event *v)
{
	const struct event_value *count = event_get(v, FIELD_COUNT);

	return count ? count->number : 1;
}

static bool same(const struct explanation *a, const struct explanation *b)
{
	return strcmp(buf_text(&a->what), buf_text(&b->what)) == 0 &&
	       strcmp(buf_text(&a->why), buf_text(&b->why)) == 0;
}

static bool collect(void *ctx, const struct ward_event *v)
{
	struct collected *c = ctx;
	struct explanation x;
	struct group *g;

	if (!explain_is_denial(v))
		return true;
	explain_event(v, &c->source->about, &x);
	for (size_t i = 0; i < c->len; i++) {
		g = &c->groups[i];
		if (g->kind != v->kind || !same(&g->x, &x))
			continue;
		g->count += count_of(v);
		explain_clear(&x);
		return true;
	}
	if (c->len == GROUPS_MAX) {
		c->more += count_of(v);
		explain_clear(&x);
		return true;
	}
	g = &c->groups[c->len++];
	*g = (struct group){ .seq = v->seq, .count = count_of(v), .kind = v->kind, .x = x };
	add_ways(g, c->source);
	return true;
}

static void put_group(struct buf *out, const struct group *g)
{
	const char *rule = buf_text(&g->x.rule);

	buf_printf(out, "#%" PRIu64 "  %s", g->seq, buf_text(&g->x.what));
	if (g->count > 1)
		buf_printf(out, "  (%" PRIu64 " times)", g->count);
	buf_printf(out, "\n    refused:  %s\n    by:       %s%s%s%s\n", buf_text(&g->x.why), rule,
		   *rule ? " (" : "", g->x.layer, *rule ? ")" : "");
	if (g->x.change_count) {
		if (g->option.len)
			buf_printf(out, "    for one run: ward run %s ...\n", buf_text(&g->option));
		buf_printf(out, "    to allow it: %s\n    which adds:\n", buf_text(&g->command));
		explain_yaml(&g->x, 14, out);
	}
	if (g->x.advice.len)
		buf_printf(out, "    %s %s\n",
			   g->x.change_count ? "note:    " : "instead: ", buf_text(&g->x.advice));
}

static void put_group_json(struct json *j, const struct group *g)
{
	auto_buf yaml = { 0 };

	json_begin_object(j, NULL);
	json_uint(j, "event", g->seq);
	json_string(j, "kind", event_kind_name((enum event_kind)g->kind));
	json_string(j, "what", buf_text(&g->x.what));
	json_string(j, "why", buf_text(&g->x.why));
	json_string(j, "rule", g->x.rule.len ? buf_text(&g->x.rule) : NULL);
	json_string(j, "layer", g->x.layer);
	json_uint(j, "count", g->count);
	json_begin_array(j, "changes");
	for (size_t i = 0; i < g->x.change_count; i++) {
		json_begin_object(j, NULL);
		json_string(j, "field", g->x.changes[i].field);
		json_string(j, "value", g->x.changes[i].value);
		json_end_object(j);
	}
	json_end_array(j);
	explain_yaml(&g->x, 0, &yaml);
	json_string(j, "yaml", yaml.len ? buf_text(&yaml) : NULL);
	json_string(j, "option", g->option.len ? buf_text(&g->option) : NULL);
	json_string(j, "command", g->command.len ? buf_text(&g->command) : NULL);
	json_string(j, "advice", g->x.advice.len ? buf_text(&g->x.advice) : NULL);
	json_end_object(j);
}

static void put_all(struct buf *out, const struct collected *c, bool as_json)
{
	struct json j = { .out = out };

	if (as_json) {
		json_begin_object(&j, NULL);
		json_string(&j, "run", c->source->run);
		json_string(&j, "workspace", c->source->workspace);
		json_string(&j, "policy", c->source->policy_file);
		json_begin_array(&j, "denials");
		for (size_t i = 0; i < c->len; i++)
			put_group_json(&j, &c->groups[i]);
		json_end_array(&j);
		json_uint(&j, "more", c->more);
		json_string(&j, "unseen", c->source->unseen ? c->source->unseen->what : NULL);
		json_end_object(&j);
		buf_puts(out, "\n");
		return;
	}
	if (!c->len)
		buf_printf(out, "run %s: no recorded event was refused\n", c->source->run);
	for (size_t i = 0; i < c->len; i++)
		put_group(out, &c->groups[i]);
	if (c->more)
		buf_printf(out,
			   "and %" PRIu64
			   " more; ward audit show --action deny lists all of them\n",
			   c->more);
	if (c->source->unseen)
		buf_printf(out, "note: ward did not see %s%s%s\n", c->source->unseen->what,
			   *c->source->unseen->next ? "; " : "", c->source->unseen->next);
}

/* One event by its number. */
struct wanted {
	const struct explain_source *source;
	uint64_t seq;
	bool found, denied;
	struct explanation *ret;
	uint8_t kind;
};

static bool find(void *ctx, const struct ward_event *v)
{
	struct wanted *w = ctx;

	if (v->seq != w->seq)
		return true;
	w->found = true;
	w->kind = v->kind;
	w->denied = explain_is_denial(v);
	if (w->denied)
		explain_event(v, &w->source->about, w->ret);
	return false;
}

static int find_number(int audit_fd, const struct explain_source *s, const char *number,
		       struct explanation *ret, uint64_t *ret_seq, uint8_t *ret_kind,
		       struct ward_err *e)
{
	struct wanted w = { .source = s, .ret = ret };

	*ret = (struct explanation){ 0 };
	if (units_parse_uint(number + (*number == '#'), &w.seq) < 0 || !w.seq) {
		ward_fail(e, EINVAL, "%.60s is not an event number", number);
		return ward_remedy(e, "ward explain %s lists them as #N", s->run);
	}
	explain_events(audit_fd, s->run, find, &w);
	*ret_seq = w.seq;
	*ret_kind = w.kind;
	if (w.found && w.denied)
		return 0;
	ward_fail(e, ENOENT,
		  w.found ? "event %" PRIu64 " of run %s is not a denial"
			  : "there is no event %" PRIu64 " in the journal of run %s",
		  w.seq, s->run);
	return ward_remedy(e, "ward explain %s lists what was refused", s->run);
}

int explain_number(int audit_fd, const struct explain_source *s, const char *number,
		   struct explanation *ret, struct ward_err *e)
{
	uint64_t seq;
	uint8_t kind;

	return find_number(audit_fd, s, number, ret, &seq, &kind, e);
}

static int show(struct options *o, int audit_fd, const struct explain_source *s, const char *event)
{
	struct collected c = { .source = s, .groups = calloc(GROUPS_MAX, sizeof(*c.groups)) };
	struct ward_err e = { 0 };
	auto_buf out = { 0 };
	int r = c.groups ? 0 : ward_fail(&e, ENOMEM, "out of memory");

	if (r == 0 && event) {
		struct group *g = &c.groups[0];

		g->count = 1;
		r = find_number(audit_fd, s, event, &g->x, &g->seq, &g->kind, &e);
		add_ways(g, s);
		c.len = 1;
	} else if (r == 0) {
		explain_events(audit_fd, s->run, collect, &c);
	}
	if (r == 0)
		put_all(&out, &c, o->json);
	for (size_t i = 0; i < c.len; i++) {
		explain_clear(&c.groups[i].x);
		buf_free(&c.groups[i].command);
		buf_free(&c.groups[i].option);
	}
	free(c.groups);
	return r < 0 ? say_error(&e, o->json, e.code == EINVAL ? EXIT_USAGE : EXIT_REFUSED)
		     : say_out(&out, EXIT_FINE);
}

/* A number alone, as the list shows them, is an event of the last run. */
static bool is_number(const char *word)
{
	const char *digits = word + (*word == '#');

	return *digits && strspn(digits, "0123456789") == strlen(digits);
}

int explain_show(struct options *o)
{
	bool number = o->word_count == 1 && is_number(o->words[0]);
	const char *run = o->word_count && !number ? o->words[0] : NULL,
		   *event = number               ? o->words[0]
			    : o->word_count == 2 ? o->words[1]
						 : NULL;
	struct explain_source s = { 0 };
	struct ward_err e = { 0 };
	auto_fd audit = place_open(false, &e);
	int code, r = audit < 0 ? audit : explain_open(audit, run, &s, &e);

	if (audit < 0 && e.code == ENOENT)
		ward_remedy(&e, "ward run writes journals unless audit.journal is none, to "
				"WARD_STATE_DIR if that is set");
	code = r < 0 ? say_error(&e, o->json, EXIT_REFUSED) : show(o, audit, &s, event);
	explain_close(&s);
	return code;
}
