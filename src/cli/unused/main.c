/*
 * ward check --unused: least privilege, looked at again. In: a policy or a tools.yaml; the journals
 * of past runs, which are verified first. Out: which of its grants no run of the last days used,
 * the file without them, and what the journals cannot tell; exit status 1 if there is such a grant.
 * Run by ward-explain with the user's rights.
 *
 * A grant counts as unused only if every run that could have used it was recorded at an audit.level
 * at which its use is an event, and no event of those runs was lost. Everything else is unknown,
 * and says why. Runs count that were started under the file: those whose journals name it, calls of
 * tools that may not exceed it, and the children of both; named journals count whatever they name.
 */
#include "cli/unused/parts.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io.h"
#include "base/path.h"
#include "base/text.h"
#include "cli/ask.h"
#include "cli/replay_journals.h"
#include "event/event.h"
#include "policy/policy_value.h"
#include "policy/units.h"

#define DAYS 30
#define DAYS_MAX 3660
#define DAY_US (UINT64_C(86400) * 1000000)

/* -- grants */

size_t unused_add(struct unused *u, enum unused_kind kind, size_t index, char *text, char *way,
		  const char *format, ...)
{
	struct unused_grant *g;
	auto_buf shown = { 0 };
	char *line = NULL;
	va_list ap;

	if (u->count == u->cap) {
		g = reallocarray(u->grants, u->cap * 2 + 32, sizeof(*g));
		if (!g) {
			u->failed = true;
			free(text);
			free(way);
			return UNUSED_WHOLE;
		}
		u->grants = g;
		u->cap = u->cap * 2 + 32;
	}
	va_start(ap, format);
	if (vasprintf(&line, format, ap) < 0)
		line = NULL;
	va_end(ap);
	text_escape(&shown, line ? line : "");
	u->failed |= !line || shown.failed;
	free(line);
	g = &u->grants[u->count];
	*g = (struct unused_grant){ .kind = (uint8_t)kind,
				    .level = AUDIT_BASIC,
				    .index = index,
				    .whole = UNUSED_WHOLE,
				    .text = text,
				    .shown = buf_take(&shown),
				    .way = way };
	if (way) {
		const struct node *n = unused_node(u, way);

		if (n)
			g->at = n->key ? (struct place){ n->key_line, n->key_column }
				       : (struct place){ n->line, n->column };
		else
			free(take_ptr(g->way)); /* a layer or the default says it, not this file */
	}
	return u->count++;
}

void unused_count(struct unused *u, enum unused_kind kind, size_t index)
{
	for (size_t i = 0; i < u->count; i++)
		if (u->grants[i].kind == kind && u->grants[i].index == index)
			u->grants[i].uses++;
}

const struct node *unused_node(const struct unused *u, const char *way)
{
	const struct node *n = u->root;

	while (n && *way) {
		size_t len = strcspn(way, "/");
		size_t at = 0, wanted = (size_t)strtoul(way, NULL, 10);
		const struct node *c =
			n->kind == NODE_MAP || n->kind == NODE_LIST ? n->first : NULL;

		for (; c; c = c->next, at++)
			if (n->kind == NODE_LIST
				    ? at == wanted
				    : strlen(c->key) == len && strncmp(c->key, way, len) == 0)
				break;
		n = c;
		way += len + (way[len] == '/');
	}
	return n;
}

enum unused_verdict unused_judge(const struct unused *u, const struct unused_grant *g)
{
	const struct unused_record *r = &u->records[g->record];

	if (g->exempt)
		return UNUSED_IMPLIED;
	if (g->uses)
		return UNUSED_IS_USED;
	if (g->whole != UNUSED_WHOLE && unused_judge(u, &u->grants[g->whole]) != UNUSED_IS_USED)
		return UNUSED_IMPLIED;
	for (unsigned level = g->level + 1u; level < UNUSED_LEVELS; level++)
		if (r->by_level[level])
			return UNUSED_UNKNOWN;
	if (r->lost || (g->kind == UNUSED_HOLDING && r->nameless))
		return UNUSED_UNKNOWN;
	return UNUSED_NEVER;
}

bool unused_goes(const struct unused *u, const struct unused_grant *g)
{
	return !g->kept && unused_judge(u, g) == UNUSED_NEVER;
}

/* -- events */

char *unused_text(const struct ward_event *v, enum event_field f)
{
	const struct event_value *value = event_get(v, f);

	return value && value->text ? strndup(value->text, value->len) : NULL;
}

int unused_compile(const struct policy *p, struct rules **ret, struct ward_err *e)
{
	int r = rules_compile(p, 1, ret, e);

	if (r < 0)
		return r;
	(*ret)->network = RULES_RESTRICTED;
	(*ret)->asks = true;
	return 0;
}

int32_t unused_rule(const struct rules *r, const struct ward_event *v, int32_t *ret_service)
{
	const struct event_value *host = event_get(v, FIELD_HOST), *port = event_get(v, FIELD_PORT);
	struct verdict verdict;
	struct host name;
	struct want w;

	*ret_service = -1;
	if (!host || !host->text || !port || host_read(host->text, host->len, &name) != HOST_FINE)
		return -1;
	want_host(&w, WANT_TRANSPARENT, &name, (uint16_t)port->number);
	decide_name(r, &w, &verdict);
	*ret_service = verdict.service;
	return verdict.service >= 0 ? -1 : verdict.rule;
}

char *unused_path(const struct ward_event *v)
{
	auto_free char *object = unused_text(v, FIELD_OBJECT), *cwd = unused_text(v, FIELD_CWD);

	if (!object || !*object || strlen(object) >= PATH_MAX)
		return NULL;
	if (*object == '/')
		return path_clean(object);
	return cwd && *cwd == '/' ? path_join(cwd, object) : NULL;
}

static unsigned level_of(const struct ward_event *v)
{
	auto_free char *text = unused_text(v, FIELD_LEVEL);

	for (unsigned level = 0; text && level < AUDIT_BASIC; level++)
		if (strcmp(text, policy_enum_name(POLICY_F_audit_level, level)) == 0)
			return level;
	return AUDIT_BASIC;
}

static void begin_run(void *context, unused_arg const char *run)
{
	struct unused *u = context;

	free(take_ptr(u->workspace));
	u->level = AUDIT_BASIC;
	u->counted = false;
	u->record = u->is_tools ? UNUSED_WHOLE : 0;
	u->tool = UNUSED_WHOLE;
}

/* What the run at hand counts for, once something of it lies within the time. */
static void count_run(struct unused *u, const struct ward_event *v)
{
	if (u->counted || u->record == UNUSED_WHOLE)
		return;
	u->counted = true;
	u->runs++;
	u->records[u->record].runs++;
	u->records[u->record].by_level[u->level]++;
	if (!u->first_us || v->time_us < u->first_us)
		u->first_us = v->time_us;
}

/* What is missing, and what was too much to be listed. */
static void count_lost(struct unused *u, const struct ward_event *v)
{
	const struct event_value *lost = event_get(v, FIELD_LOST);

	if (u->record == UNUSED_WHOLE)
		return;
	if (v->kind == EVENT_JOURNAL_GAP)
		u->records[u->record].lost += lost && lost->number ? lost->number : 1;
	else if (v->kind == EVENT_FILE_READ && v->action != ACTION_DENY &&
		 event_get(v, FIELD_COUNT) && !event_get(v, FIELD_EXE))
		u->records[u->record].lost += event_get(v, FIELD_COUNT)->number;
}

static bool see(void *context, const struct ward_event *v)
{
	struct unused *u = context;

	if (v->kind == EVENT_RUN_START) {
		u->level = level_of(v);
		free(u->workspace);
		u->workspace = unused_text(v, FIELD_WORKSPACE);
	}
	if (u->is_tools)
		unused_see_tools(u, v);
	if (v->time_us < u->since_us)
		return true;
	count_run(u, v);
	count_lost(u, v);
	if (!u->is_tools)
		unused_see_policy(u, v);
	return true;
}

/* -- which runs */

struct first_look {
	char *policy, *parent, *tool_file, *tool_policy; /* owned */
	unsigned seen;
};

static bool look(void *context, const struct ward_event *v)
{
	struct first_look *l = context;

	if (v->kind == EVENT_RUN_START && !l->seen) {
		l->policy = unused_text(v, FIELD_POLICY);
		l->parent = unused_text(v, FIELD_PARENT);
	} else if (v->kind == EVENT_TOOL && !l->tool_file) {
		l->tool_file = unused_text(v, FIELD_PATH);
		l->tool_policy = unused_text(v, FIELD_POLICY);
	}
	return ++l->seen < 4;
}

/* Whether the run ended before the time that is looked at: its id begins with when it started, and
 * nothing was written into its journal since. */
static bool is_older(const struct unused *u, int audit_fd, const char *run)
{
	char since[EVENT_TIME_TEXT], day[9];
	auto_strv files = { 0 };
	struct stat st;
	bool live;

	event_time_text(u->since_us, since);
	snprintf(day, sizeof(day), "%.4s%.2s%.2s", since, since + 5, since + 8);
	if (strncmp(run, day, 8) >= 0)
		return false;
	lines_files(audit_fd, run, &files, &live);
	return !live && files.len &&
	       fstatat(audit_fd, files.items[files.len - 1], &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	       (uint64_t)st.st_mtim.tv_sec * 1000000 < u->since_us;
}

static bool is_file(const struct unused *u, const char *text)
{
	return text && strcmp(text, u->path) == 0;
}

static bool wants(void *context, int audit_fd, const char *run)
{
	struct unused *u = context;
	struct first_look l = { 0 };
	bool wanted;

	if (is_older(u, audit_fd, run))
		return false;
	explain_events(audit_fd, run, look, &l);
	wanted = u->is_tools ? is_file(u, l.tool_file) || (u->o->all && l.tool_file)
			     : u->o->all || is_file(u, l.policy) || is_file(u, l.tool_policy) ||
				       (l.parent && strv_has(&u->family, l.parent));
	if (wanted)
		strv_add(&u->family, run);
	free(l.policy);
	free(l.parent);
	free(l.tool_file);
	free(l.tool_policy);
	return wanted;
}

/* The journals do not reach back as far as was asked for. */
static void note_beginning(struct unused *u, int audit_fd)
{
	struct ward_err ignored = { 0 };
	char since[EVENT_TIME_TEXT];
	auto_strv runs = { 0 };

	event_time_text(u->since_us, since);
	if (lines_runs(audit_fd, &runs, &ignored) == 0 && runs.len) {
		const char *id = runs.items[0];
		char day[12] = "";

		if (strspn(id, "0123456789") == 8)
			snprintf(day, sizeof(day), "%.4s-%.2s-%.2s", id, id + 4, id + 6);
		if (*day && strncmp(day, since, 10) > 0)
			strv_addf(&u->notes,
				  "the journals begin on %s: of the last %u days, those "
				  "before are not on record",
				  day, u->days);
	}
}

static int read_journals(struct unused *u, struct ward_err *e)
{
	struct replay_source source = {
		.begin = begin_run, .see = see, .wants = wants, .context = u, .notes = &u->notes
	};
	struct ward_err journals = { 0 };
	auto_fd audit = place_open(false, &journals);
	size_t named = u->o->word_count ? u->o->word_count - 1 : 0;
	int r;

	if (audit < 0 && journals.code != ENOENT) {
		*e = journals;
		return audit;
	}
	r = audit < 0 && !named ? 0 : replay_journals(&source, audit, u->o->words, named, e);
	if (r < 0)
		return r;
	if (!named)
		note_beginning(u, audit);
	if (u->runs)
		return 0;
	ward_fail(e, ENOENT,
		  "%.300s: no run of the last %u days is on record, so nothing can be "
		  "said about its grants",
		  u->file, u->days);
	return ward_remedy(e, "more days: --days N; runs under other files: --all; journals of "
			      "another machine: ward check --unused JOURNAL... FILE");
}

/* -- the whole */

static bool is_tools_file(const struct options *o, const char *file)
{
	const char *slash = strrchr(file, '/');

	return o->tools_check || strcmp(slash ? slash + 1 : file, TOOLS_FILE_NAME) == 0;
}

static int read_tree(struct unused *u, struct ward_err *e)
{
	struct reader r = { .name = u->file, .e = e };
	const uint8_t *bytes = (const uint8_t *)buf_text(&u->bytes);

	u->root = policy_is_json(u->file, bytes, u->bytes.len) ? json_read(&r, bytes, u->bytes.len)
							       : yaml_read(&r, bytes, u->bytes.len);
	return r.count ? -e->code : 0;
}

static int open_file(struct unused *u, char **found, struct ward_err *e)
{
	const struct options *o = u->o;
	int r;

	if (o->word_count)
		u->file = o->words[o->word_count - 1];
	else if (ask_policy_file(found, e) == 0)
		u->file = *found;
	else
		return -e->code;
	u->is_tools = is_tools_file(o, u->file);
	u->path = realpath(u->file, NULL);
	if (!u->path)
		return ward_fail_errno(e, "cannot open %.300s", u->file);
	r = io_read_file(AT_FDCWD, u->path, NODE_BYTES_MAX, &u->bytes);
	if (r < 0)
		return ward_fail(e, -r, "cannot read %.300s: %s", u->file, strerror(-r));
	r = read_tree(u, e);
	if (r < 0)
		return r;
	return u->is_tools ? unused_read_tools(u, e) : unused_read_policy(u, e);
}

static int read_options(struct unused *u, struct ward_err *e)
{
	static const char formats[] = "text json sarif junit ";
	const char *format = u->o->format, *at = format ? strstr(formats, format) : formats;
	uint64_t days = DAYS, now = event_now_us();

	if (!at || (format && (!*format || at[strlen(format)] != ' ')))
		return ward_fail(e, EINVAL, "--format %.50s: expected text, json, sarif or junit",
				 format);

	if (u->o->check_days &&
	    (units_parse_uint(u->o->check_days, &days) < 0 || !days || days > DAYS_MAX)) {
		ward_fail(e, EINVAL, "--days %.40s: expected a whole number from 1 to %d",
			  u->o->check_days, DAYS_MAX);
		return -EINVAL;
	}
	u->days = (unsigned)days;
	u->since_us = now > days * DAY_US ? now - days * DAY_US : 0;
	return 0;
}

static void unused_clear(struct unused *u)
{
	for (size_t i = 0; i < u->count; i++) {
		free(u->grants[i].text);
		free(u->grants[i].shown);
		free(u->grants[i].way);
		free(u->grants[i].kept);
	}
	for (size_t i = 0; u->tool_rules && i < u->source.t.file.tools.len; i++)
		rules_free(u->tool_rules[i]);
	free(u->tool_rules);
	free(u->grants);
	free(u->records);
	free(u->path);
	free(u->workspace);
	buf_free(&u->bytes);
	buf_free(&u->narrowed);
	node_free(u->root);
	strv_free(&u->notes);
	strv_free(&u->family);
	strv_free(&u->done);
	policy_clear(&u->policy);
	rules_free(u->rules);
	tools_unload(&u->source);
}

int check_unused(struct options *o)
{
	struct unused u = { .o = o, .tool = UNUSED_WHOLE };
	auto_free char *found = NULL;
	struct ward_err e = { 0 };
	int r = read_options(&u, &e);

	if (r < 0)
		return say_error(&e, o->json, EXIT_USAGE);
	r = open_file(&u, &found, &e);
	if (r == 0)
		r = read_journals(&u, &e);
	if (r == 0)
		unused_keep(&u);
	if (r == 0)
		r = unused_narrow(&u, &e);
	if (r == 0 && o->check_write)
		r = unused_write(&u, o->check_write, &e);
	if (r == 0 && (u.failed || u.notes.failed))
		r = ward_fail(&e, ENOMEM, "out of memory");
	if (r == 0)
		r = unused_report(&u, &e);
	unused_clear(&u);
	return r < 0 ? say_error(&e, o->json, EXIT_REFUSED) : r;
}
