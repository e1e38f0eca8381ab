/*
 * Denials in words. In: an event, and what is known about its run. Out: what was refused, by what,
 * and the change of the policy that would allow it. The event comes from a journal or straight from
 * where it happened; its texts may have been chosen inside, so everything is escaped for people,
 * quoted for shells, and offered as a change only if it can be written in a policy as it is.
 * tables/explain.def says for each kind which of the functions below knows about it. Pure
 * functions; run by ward-explain, and by the supervisor for --hints.
 *
 * The change is the smallest one that is known: a host with its port, a method with its path, a
 * file and not its directory; a limit is doubled, because it is unknown how much more it would have
 * been.
 */
#include "observe/explain.h"

#include <inttypes.h>
#include <string.h>

#include "base/path.h"
#include "base/text.h"
#include "event/event.h"
#include "event/table_names.h"
#include "model/plan.h"
#include "observe/learn_path.h"
#include "policy/policy_edit.h"

enum how {
	HOW_NONE,
	HOW_NOT,
	HOW_LINE,
	HOW_WAY,
	HOW_SYSCALL,
	HOW_PROGRAM,
	HOW_VIEW,
	HOW_GUARD,
	HOW_PLANTED,
	HOW_LIMIT,
	HOW_BUDGET,
	HOW_GRANT,
	HOW_LEAK,
	HOW_SAID
};

struct row {
	uint8_t how;
	char layer[64], advice[128];
};

static const struct row rows[EVENT_KINDS] = {
#define EXPLAIN(kind, way, where, words) [EVENT_##kind] = { HOW_##way, where, words },
#include "explain.def"
};

enum reason {
#define REASON(id, ...) REASON_##id,
#include "egress.def"
	REASONS
};

const char *explain_reason_advice(size_t reason)
{
	static const char advice[REASONS][128] = {
#define REASON_ADVICE(id, text) [REASON_##id] = text,
#include "explain.def"
	};

	return reason < REASONS ? advice[reason] : "";
}

static const char *reason_advice(const struct event_value *name)
{
	static const char names[REASONS][24] = {
#define REASON(id, label, ...) [REASON_##id] = label,
#include "egress.def"
	};

	for (size_t i = 0; name && i < REASONS; i++)
		if (strlen(names[i]) == name->len && memcmp(names[i], name->text, name->len) == 0)
			return explain_reason_advice(i);
	return "";
}

bool explain_knows(enum event_kind kind)
{
	return kind < EVENT_KINDS && rows[kind].how != HOW_NONE;
}

bool explain_is_denial(const struct ward_event *v)
{
	return v->action == ACTION_DENY && rows[v->kind].how != HOW_NOT &&
	       rows[v->kind].how != HOW_NONE;
}

/* -- texts */

/* A text of the event as a C string that ends where the text does, or at a NUL in it. The caller
 * frees. */
static char *copy(const struct ward_event *v, enum event_field f)
{
	const struct event_value *value = event_get(v, f);

	return value && value->text ? strndup(value->text, value->len) : NULL;
}

static void put_escaped(struct buf *out, const char *text)
{
	if (text)
		text_escape(out, text);
}

/* Whether a text can be written down by a person: UTF-8, and nothing in it that acts on a
 * terminal. */
static bool is_harmless(const char *s)
{
	const unsigned char *at = (const unsigned char *)s;

	while (*at) {
		unsigned point;
		size_t n = text_utf8(at, &point);

		if (!n || text_acts(point))
			return false;
		at += n;
	}
	return true;
}

/* -- changes */

/* Whether one path may be offered to be shown, by its name: never one that holds secrets
 * (tables/learn.def), or everything. */
static enum learn_verdict judge_path(const char *path, const char *home)
{
	auto_free char *clean_home = home && *home == '/' ? path_clean(home) : NULL;
	auto_free char *whole = *path == '~' && clean_home
					? path_join(clean_home, path + 1 + strspn(path + 1, "/"))
					: strdup(path);
	auto_free char *clean = whole && *whole == '/' ? path_clean(whole) : NULL;

	return clean ? learn_judge(clean, clean_home) : LEARN_SECRET;
}

/* The same for all mounts of a document. What cannot be read is not offered. */
static bool may_show(struct explanation *x, const struct buf *document)
{
	struct policy_errors errors = { 0 };
	struct policy p = { 0 };
	struct ward_err ignored = { 0 };
	enum learn_verdict v = LEARN_SECRET;

	if (policy_defaults(&p, &ignored) == 0 &&
	    policy_read(&p, "remedy.yaml", (const uint8_t *)buf_text(document), document->len,
			POLICY_FILE, &errors) == 0)
		for (size_t i = 0; i < p.fs_host_mounts.len && (i == 0 || v == LEARN_GIVE); i++) {
			v = judge_path(p.fs_host_mounts.items[i].path, x->home);
			v = v == LEARN_SETTINGS ? LEARN_GIVE : v;
		}
	policy_clear(&p);
	strv_free(&errors.lines);
	if (v != LEARN_GIVE && !x->advice.len)
		buf_puts(&x->advice, v == LEARN_SECRET
					     ? "it may contain credentials, so ward suggests no "
					       "change; mount a copy without them"
					     : "it contains too much to mount as a whole: name the "
					       "files that are needed");
	return v == LEARN_GIVE;
}

/* Adds a change if a policy can hold it. */
static void add_change(struct explanation *x, const char *field, const char *value)
{
	struct explain_change *c = &x->changes[x->change_count];
	struct ward_err ignored = { 0 };
	auto_buf made = { 0 };

	if (x->change_count == EXPLAIN_CHANGES_MAX || !value || !*value || !is_harmless(value) ||
	    strlen(field) >= sizeof(c->field) ||
	    policy_edit("remedy.yaml", (const uint8_t *)"", 0, field, value, &made, &ignored) != 0)
		return;
	if (strcmp(field, "filesystem.host_mounts") == 0 && !may_show(x, &made))
		return;
	snprintf(c->field, sizeof(c->field), "%s", field);
	c->value = strdup(value);
	x->change_count += c->value != NULL;
	x->failed |= !c->value;
}

/* ["a:443"] is a:443: one entry needs no brackets. */
static char *one_entry(const char *value)
{
	size_t n = strlen(value);
	const char *inner = value + 1;

	if (n < 3 || *value != '[' || value[n - 1] != ']')
		return strdup(value);
	n -= 2;
	if (*inner == '"' && n > 2 && inner[1] != '[' && inner[n - 1] == '"' &&
	    !memchr(inner + 1, '"', n - 2) && !memchr(inner, '\\', n))
		return strndup(inner + 1, n - 2);
	if (n > 11 && strncmp(inner, "{path: \"", 8) == 0 &&
	    strncmp(inner + n - 2, "\"}", 2) == 0 && !memchr(inner + 8, '"', n - 10) &&
	    !memchr(inner, '\\', n))
		return strndup(inner + 8, n - 10); /* a mount that says nothing but its path */
	if (*inner == '{' && inner[n - 1] == '}' && !memchr(inner + 1, '{', n - 1))
		return strndup(inner, n);
	return strdup(value);
}

bool explain_read_line(const char *line, struct explain_change *ret)
{
	struct ward_err ignored = { 0 };
	auto_buf made = { 0 };
	size_t n = strcspn(line, ":");

	ret->value = NULL;
	if (n >= sizeof(ret->field) || strncmp(line + n, ": ", 2) != 0 ||
	    strspn(line, "abcdefghijklmnopqrstuvwxyz_.") != n || strstr(line, "..."))
		return false;
	snprintf(ret->field, sizeof(ret->field), "%.*s", (int)n, line);
	ret->value = one_entry(line + n + 2);
	if (ret->value && is_harmless(ret->value) &&
	    policy_edit("remedy.yaml", (const uint8_t *)"", 0, ret->field, ret->value, &made,
			&ignored) == 0)
		return true;
	free(ret->value);
	ret->value = NULL;
	return false;
}

/* The remedy of an event: a line of the policy, or words. */
static void use_remedy(struct explanation *x, const struct ward_event *v)
{
	auto_free char *remedy = copy(v, FIELD_REMEDY);
	struct explain_change c;

	if (!remedy || !*remedy)
		return;
	if (explain_read_line(remedy, &c)) {
		add_change(x, c.field, c.value);
		free(c.value);
	} else {
		put_escaped(&x->advice, remedy);
	}
}

/* -- the kinds */

static void explain_way(struct explanation *x, const struct ward_event *v,
			const struct explain_run *run)
{
	const struct event_value *reason = event_get(v, FIELD_REASON);
	const char *advice = reason_advice(reason);

	if (reason && reason->len == 10 && memcmp(reason->text, "no_network", 10) == 0)
		x->layer = "net namespace: no network except a loopback of its own";
	else if (v->kind == EVENT_CONNECT && !reason)
		x->layer = "namespaces: services of the host are not in the sandbox";
	use_remedy(x, v);
	if (run->network_off && x->change_count &&
	    strncmp(x->changes[0].field, "network.", 8) == 0 &&
	    strcmp(x->changes[0].field, "network.ingress") != 0) /* is enough by itself */
		add_change(x, "network.mode", "restricted");
	if (!x->advice.len && *advice && !x->change_count)
		buf_puts(&x->advice, advice);
}

/* Sizes as a person would write them. */
static void put_size(struct buf *out, uint64_t bytes)
{
	static const char units[][3] = { "", "Ki", "Mi", "Gi", "Ti" };
	size_t unit = 0;

	for (; unit + 1 < ARRAY_LEN(units) && bytes && bytes % 1024 == 0; unit++)
		bytes /= 1024;
	buf_printf(out, "%" PRIu64 "%s", bytes, units[unit]);
}

static uint64_t twice(uint64_t value)
{
	return value > UINT64_MAX / 4 ? value : value * 2;
}

static void put_twice(struct buf *out, const struct policy_row *row, uint64_t value)
{
	if (strcmp(row->type, "SIZE") == 0 || strcmp(row->type, "MEMORY") == 0)
		put_size(out, value > (64 << 20) ? (twice(value) + (1 << 20) - 1) >> 20 << 20
						 : twice(value));
	else if (strcmp(row->type, "SECONDS") == 0)
		buf_printf(out, value % 500 ? "%.3f" : "%.0f", (double)twice(value) / 1000);
	else if (strcmp(row->type, "CPUS") == 0)
		buf_printf(out, value % 500 ? "%.3f" : "%.0f", (double)twice(value) / 1000);
	else
		buf_printf(out, "%" PRIu64, twice(value));
}

static void double_limit(struct explanation *x, enum policy_field field, uint64_t value)
{
	const struct policy_row *row = policy_row(field);
	auto_buf text = { 0 };

	put_twice(&text, row, value);
	add_change(x, row->path, buf_text(&text));
	if (x->change_count)
		buf_puts(&x->advice, "that is twice the current value; none removes the limit");
}

static const uint8_t limit_fields[LIMITS] = {
#define LIMIT(id, name, unit, member, ...) [LIMIT_##id] = POLICY_F_##member,
#include "limits.def"
};

void explain_limit_line(enum limit l, uint64_t value, struct buf *out)
{
	const struct policy_row *row = policy_row((enum policy_field)limit_fields[l]);

	buf_printf(out, "%s: ", row->path);
	put_twice(out, row, value);
}

static void explain_limit(struct explanation *x, const struct ward_event *v)
{
	const struct event_value *value = event_get(v, FIELD_VALUE),
				 *held = event_get(v, FIELD_HELD_BY);
	auto_free char *name = copy(v, FIELD_OBJECT), *by = copy(v, FIELD_HELD_BY);
	bool by_machine = by && strcmp(by, "machine") == 0; /* a virtual machine's own memory */

	for (enum limit l = 0; name && l < LIMITS; l++) {
		enum policy_field field = by_machine && l == LIMIT_MEMORY
						  ? POLICY_F_vm_memory
						  : (enum policy_field)limit_fields[l];

		if (strcmp(limit_name(l), name) != 0)
			continue;
		x->rule.len = 0;
		buf_puts(&x->rule, policy_row(field)->path);
		if (held && held->len) {
			buf_puts(&x->why, "; held by ");
			put_escaped(&x->why, by);
		}
		if (value)
			double_limit(x, field, value->number);
		else
			buf_printf(&x->advice, "raise it: %s", limit_option(l));
	}
	if (!x->change_count && !x->advice.len)
		use_remedy(x, v);
}

/* A limit of the network: which one the event says by the name of its field, or in its remedy. */
static void explain_budget(struct explanation *x, const struct ward_event *v)
{
	static const uint8_t fields[] = { POLICY_F_net_connections, POLICY_F_net_connection_rate,
					  POLICY_F_net_receive, POLICY_F_net_send,
					  POLICY_F_net_bandwidth };
	const struct event_value *value = event_get(v, FIELD_VALUE);
	auto_free char *name = copy(v, FIELD_OBJECT), *rule = copy(v, FIELD_RULE);

	for (size_t i = 0; i < ARRAY_LEN(fields); i++) {
		const char *path = policy_row((enum policy_field)fields[i])->path,
			   *last = strchr(path, '.') + 1;

		if (value &&
		    ((name && strcmp(name, last) == 0) || (rule && strcmp(rule, path) == 0)))
			double_limit(x, (enum policy_field)fields[i], value->number);
	}
	if (!x->change_count)
		use_remedy(x, v);
}

/* "more of those before": counted, and nothing else is known. */
static void explain_syscall(struct explanation *x, const struct ward_event *v)
{
	if (event_get(v, FIELD_VALUE))
		use_remedy(x, v);
	else
		buf_puts(&x->advice, "earlier events show which");
}

/* The command itself could not be started. */
static void explain_program(struct explanation *x, const struct ward_event *v)
{
	auto_free char *name = copy(v, FIELD_OBJECT), *path = copy(v, FIELD_PATH);

	if (path && name && !strchr(name, '/'))
		add_change(x, "filesystem.programs", name);
	else if (path && *path == '/')
		add_change(x, "filesystem.host_mounts", path);
	if (!x->change_count)
		use_remedy(x, v);
}

/* Only what was found harmless when it was asked for has a remedy (missing.c). */
static void explain_view(struct explanation *x, const struct ward_event *v)
{
	use_remedy(x, v);
	if (!x->change_count && !x->advice.len)
		buf_puts(&x->advice,
			 "it may contain credentials, or too much, so ward suggests no change");
}

/* A pattern for exactly this path; names with characters that patterns use are left to a person. */
static void release(struct explanation *x, const char *path, const struct explain_run *run)
{
	auto_buf pattern = { 0 };
	size_t n = run->workspace ? strlen(run->workspace) : 0;

	if (*path == '/' && n && strncmp(path, run->workspace, n) == 0 && path[n] == '/')
		path += n + 1;
	if (*path == '/' || strpbrk(path, "*?[\\!#") || !*path || strchr(path, ' '))
		return;
	/* a name alone would be one of every directory */
	buf_printf(&pattern, strchr(path, '/') ? "!%s" : "!/%s", path);
	add_change(x, "filesystem.protect", buf_text(&pattern));
}

static void explain_guard(struct explanation *x, const struct ward_event *v,
			  const struct explain_run *run)
{
	auto_free char *path = copy(v, FIELD_OBJECT);

	if (path)
		release(x, path, run);
}

/* A set-id file is not protected but refused: nothing takes that out. */
static void explain_planted(struct explanation *x, const struct ward_event *v,
			    const struct explain_run *run)
{
	auto_free char *why = copy(v, FIELD_WHY), *path = copy(v, FIELD_OBJECT);

	if (path && !(why && strstr(why, "set-")))
		release(x, path, run);
}

static void explain_grant(struct explanation *x, const struct ward_event *v)
{
	auto_free char *name = copy(v, FIELD_GRANT), *why = copy(v, FIELD_WHY);

	if (event_get(v, FIELD_REMEDY)) { /* no grant was there */
		x->layer = "credentials: the sandbox has no login of yours";
		use_remedy(x, v);
		return;
	}
	if (why && strstr(why, "max_uses"))
		buf_puts(&x->advice, "raise max_uses of the grant ");
	else if (why && strstr(why, "revoked"))
		buf_puts(&x->advice, "it was revoked during the run (ward secret revoke): start a "
				     "new run to use it; the grant is ");
	else if (why && (strstr(why, "expired") || strstr(why, "renewed")))
		buf_puts(&x->advice,
			 "make sure that its source answers, or raise ttl_seconds of the grant ");
	else
		buf_puts(&x->advice, "the grant is ");
	put_escaped(&x->advice, name ? name : "unknown");
	buf_puts(&x->advice, " in credentials.grants");
}

/* Where a secret may go is never widened by a ready command: an operator who does that must read
 * the grant. */
static void explain_leak(struct explanation *x, const struct ward_event *v)
{
	auto_free char *name = copy(v, FIELD_GRANT), *host = copy(v, FIELD_HOST);

	if (!name || !host)
		return;
	buf_puts(&x->advice, "if ");
	put_escaped(&x->advice, host);
	buf_puts(&x->advice, " should get it, add that name to hosts of the grant ");
	put_escaped(&x->advice, name);
	buf_puts(&x->advice, " in credentials.grants");
}

static void explain_how(struct explanation *x, const struct ward_event *v,
			const struct explain_run *run)
{
	switch ((enum how)rows[v->kind].how) {
	case HOW_NONE:
	case HOW_NOT:
		break;
	case HOW_LINE:
	case HOW_SAID:
		use_remedy(x, v);
		break;
	case HOW_WAY:
		explain_way(x, v, run);
		break;
	case HOW_SYSCALL:
		explain_syscall(x, v);
		break;
	case HOW_PROGRAM:
		explain_program(x, v);
		break;
	case HOW_VIEW:
		explain_view(x, v);
		break;
	case HOW_GUARD:
		explain_guard(x, v, run);
		break;
	case HOW_PLANTED:
		explain_planted(x, v, run);
		break;
	case HOW_LIMIT:
		explain_limit(x, v);
		break;
	case HOW_BUDGET:
		explain_budget(x, v);
		break;
	case HOW_GRANT:
		explain_grant(x, v);
		break;
	case HOW_LEAK:
		explain_leak(x, v);
		break;
	}
}

/* A login that a command missed (box_missed.c), and no use of a grant. */
static bool is_login(const struct ward_event *v)
{
	return v->kind == EVENT_CREDENTIAL_USE && event_get(v, FIELD_REMEDY);
}

/* What was tried, in words: "system call unshare by /usr/bin/unshare". */
static void put_what(struct buf *out, const struct ward_event *v)
{
	static const char before[][20] = {
		[EVENT_EXEC] = "program ",
		[EVENT_SYSCALL] = "system call ",
		[EVENT_DNS] = "name ",
		[EVENT_ENV_MISSING] = "variable ",
		[EVENT_CONNECT] = "connection to ",
		[EVENT_PACKET] = "packet to ",
		[EVENT_CREDENTIAL_USE] = "use of grant ",
		[EVENT_CREDENTIAL_LEAK] = "secret of grant ",
		[EVENT_CREDENTIAL_SIGN] = "signature by ",
		[EVENT_LIMIT] = "limit on ",
		[EVENT_NET_LIMIT] = "limit on ",
		[EVENT_FILE_GUARD] = "writing ",
		[EVENT_FILE_QUARANTINE] = "leaving ",
		[EVENT_FILE_CHANGE] = "writing ",
		[EVENT_FILE_MISSING] = "file ",
	};
	auto_free char *object = copy(v, FIELD_OBJECT), *exe = copy(v, FIELD_EXE),
		       *host = copy(v, FIELD_HOST);

	if (v->kind < ARRAY_LEN(before) && !is_login(v))
		buf_puts(out, before[v->kind]);
	put_escaped(out, object ? object : event_kind_name((enum event_kind)v->kind));
	if (host && (v->kind == EVENT_CREDENTIAL_USE || v->kind == EVENT_CREDENTIAL_LEAK ||
		     v->kind == EVENT_CREDENTIAL_SIGN)) {
		buf_puts(out, v->kind == EVENT_CREDENTIAL_SIGN ? " for " : " to ");
		put_escaped(out, host);
	}
	if (exe && v->kind == EVENT_SYSCALL) {
		buf_puts(out, " by ");
		put_escaped(out, exe);
	}
}

/* What a kind is about, without what its fields mean. */
static void put_kind(struct buf *out, enum event_kind kind)
{
	const char *help = event_kind_help(kind), *end = strstr(help, "; object:");

	buf_add(out, help, end ? (size_t)(end - help) : strlen(help));
}

void explain_event(const struct ward_event *v, const struct explain_run *run,
		   struct explanation *ret)
{
	const struct row *row = &rows[v->kind];
	auto_free char *why = copy(v, FIELD_WHY), *rule = copy(v, FIELD_RULE);

	*ret = (struct explanation){ .layer = row->layer, .home = run->home };
	put_what(&ret->what, v);
	if (why)
		put_escaped(&ret->why, why);
	else
		put_kind(&ret->why, (enum event_kind)v->kind);
	put_escaped(&ret->rule, rule);
	explain_how(ret, v, run);
	if (*row->advice &&
	    (!ret->change_count || row->how == HOW_GUARD || row->how == HOW_VIEW ||
	     row->how == HOW_PLANTED || row->how == HOW_BUDGET) &&
	    !(ret->advice.len && row->how == HOW_WAY) &&
	    !(ret->advice.len && row->how == HOW_SYSCALL) && !is_login(v)) {
		buf_puts(&ret->advice, ret->advice.len ? "; " : "");
		buf_puts(&ret->advice, row->advice);
	}
	ret->failed |=
		ret->what.failed || ret->why.failed || ret->rule.failed || ret->advice.failed;
}

void explain_clear(struct explanation *x)
{
	buf_free(&x->what);
	buf_free(&x->why);
	buf_free(&x->rule);
	buf_free(&x->advice);
	for (size_t i = 0; i < x->change_count; i++)
		free(x->changes[i].value);
	*x = (struct explanation){ 0 };
}

/* -- ready to be used */

static void put_word(struct buf *out, const char *word)
{
	if (text_is_plain(word)) {
		buf_puts(out, word);
		return;
	}
	buf_puts(out, "'");
	for (; *word; word++)
		if (*word == '\'')
			buf_puts(out, "'\\''");
		else
			buf_add(out, word, 1);
	buf_puts(out, "'");
}

/* The policy that ward policy add changes unless another is named. */
static bool is_usual_file(const struct explain_run *run)
{
	static const char names[][12] = { "/ward.yaml", "/ward.json" };
	size_t n = run->workspace ? strlen(run->workspace) : 0;

	for (size_t i = 0; n && i < ARRAY_LEN(names); i++)
		if (strncmp(run->policy_file, run->workspace, n) == 0 &&
		    strcmp(run->policy_file + n, names[i]) == 0)
			return true;
	return false;
}

void explain_command(const struct explanation *x, const struct explain_run *run, struct buf *out)
{
	if (!x->change_count)
		return;
	buf_puts(out, "ward policy add");
	if (run->policy_file && is_harmless(run->policy_file) && !is_usual_file(run)) {
		buf_puts(out, " -p ");
		put_word(out, run->policy_file);
	}
	for (size_t i = 0; i < x->change_count; i++) {
		const char *value = x->changes[i].value;

		if (*value == '-' && i == 0)
			buf_puts(out, " --");
		buf_printf(out, " %s ", x->changes[i].field);
		put_word(out, value);
	}
}

void explain_yaml(const struct explanation *x, unsigned indent, struct buf *out)
{
	auto_buf text = { 0 };

	for (size_t i = 0; i < x->change_count; i++) {
		struct ward_err ignored = { 0 };
		auto_buf next = { 0 };

		if (policy_edit("remedy.yaml", (const uint8_t *)buf_text(&text), text.len,
				x->changes[i].field, x->changes[i].value, &next, &ignored) < 0)
			return;
		buf_free(&text);
		text = next;
		next = (struct buf){ 0 };
	}
	for (const char *line = buf_text(&text); *line;) {
		size_t n = strcspn(line, "\n");

		buf_printf(out, "%*s%.*s\n", (int)indent, "", (int)n, line);
		line += n + (line[n] == '\n');
	}
}
