/*
 * Decides what a credential may do (access.h). In: a credential, a right, what it is used for, the
 * moment. Out: a row of access.def. Every check of the table is a function here; what is unknown
 * does not pass a check that asks for it. Runs in the front. Pure.
 */
#include "daemon/access.h"

#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "rules/json_in.h"

#define CLOCK_BACK_MS 60000 /* a clock is corrected by less than that, now and then */
#define DAY_MINUTES (24 * 60)

/* The rights of a role as a number with one bit for each. */
enum {
#define RIGHT(id, name, what) BIT_##id = 1 << RIGHT_##id,
#include "daemon/access.def"
};

static const struct {
	const char *name;
	unsigned rights;
} roles[ROLES] = {
#define READ BIT_READ
#define USE BIT_USE
#define CREATE BIT_CREATE
#define END BIT_END
#define KEEP BIT_KEEP
#define STOP BIT_STOP
#define APPROVE BIT_APPROVE
#define TOKENS BIT_TOKENS
#define AUDIT BIT_AUDIT
#define SERVER BIT_SERVER
#define ROLE(id, name, rights, what) [ROLE_##id] = { name, rights },
#include "daemon/access.def"
#undef READ
#undef USE
#undef CREATE
#undef END
#undef KEEP
#undef STOP
#undef APPROVE
#undef TOKENS
#undef AUDIT
#undef SERVER
};

/* What one decision is about. */
struct use {
	const struct access_who *who;
	enum access_right right;
	const struct access_what *what;
	const struct access_when *when;
};

static bool check_EXPIRED(const struct use *u)
{
	return !u->who->expires_ms || u->when->now_ms < u->who->expires_ms;
}

/* With a clock that was set back, a token would live longer than it was made for. */
static bool check_EARLY(const struct use *u)
{
	return !u->who->expires_ms || u->when->now_ms >= u->who->made_ms - CLOCK_BACK_MS;
}

/* Calls f for each entry of a list with commas between, until it says true. */
static bool any_of(const char *list, bool (*f)(const char *word, size_t n, const void *x),
		   const void *x)
{
	while (*list) {
		size_t n = strcspn(list, ",");

		if (f(list, n, x))
			return true;
		list += n + (list[n] == ',');
	}
	return false;
}

static bool is_word(const char *word, size_t n, const void *x)
{
	return strlen(x) == n && memcmp(word, x, n) == 0;
}

bool access_list_has(const char *list, const char *word)
{
	return any_of(list, is_word, word);
}

/* "ADDRESS" or "ADDRESS/BITS"; false: neither. */
static bool read_block(const char *text, size_t n, struct ip *ret, unsigned *ret_bits)
{
	const char *slash = memchr(text, '/', n);
	size_t len = slash ? (size_t)(slash - text) : n;
	struct host h;
	unsigned bits = 0, most;

	if (host_read(text, len, &h) != HOST_FINE || h.kind != HOST_ADDRESS)
		return false;
	most = h.ip.family == 4 ? 32 : 128;
	if (slash && (n - len < 2 || n - len > 4))
		return false;
	for (const char *at = text + len + 1; slash && at < text + n; at++) {
		if (*at < '0' || *at > '9')
			return false;
		bits = bits * 10 + (unsigned)(*at - '0');
	}
	*ret = h.ip;
	*ret_bits = slash ? bits : most;
	return *ret_bits <= most;
}

static bool is_within(const char *word, size_t n, const void *x)
{
	struct ip block;
	unsigned bits;

	return read_block(word, n, &block, &bits) && ip_within(x, &block, bits);
}

static bool check_SOURCE(const struct use *u)
{
	return !*u->who->sources ||
	       (u->when->source.family && any_of(u->who->sources, is_within, &u->when->source));
}

/* "HH:MM" as minutes; -1: none. */
static int read_minutes(const char *s)
{
	for (int i = 0; i < 5; i++)
		if (i == 2 ? s[i] != ':' : s[i] < '0' || s[i] > '9')
			return -1;
	int hour = (s[0] - '0') * 10 + s[1] - '0', minute = (s[3] - '0') * 10 + s[4] - '0';

	return hour < 24 && minute < 60 ? hour * 60 + minute : -1;
}

static bool read_hours(const char *text, int *ret_from, int *ret_to)
{
	if (strlen(text) != 11 || text[5] != '-')
		return false;
	*ret_from = read_minutes(text);
	*ret_to = read_minutes(text + 6);
	return *ret_from >= 0 && *ret_to >= 0 && *ret_from != *ret_to;
}

static bool check_HOURS(const struct use *u)
{
	int now = (int)(u->when->now_ms / 60000 % DAY_MINUTES), from, to;

	if (!*u->who->hours)
		return true;
	if (!read_hours(u->who->hours, &from, &to))
		return false;
	return from < to ? now >= from && now < to : now >= from || now < to;
}

static bool check_ROLE(const struct use *u)
{
	return u->right == RIGHT_OPEN || (u->who->role < ROLES && u->right < RIGHTS &&
					  roles[u->who->role].rights & (1U << u->right));
}

static bool check_DERIVED(const struct use *u)
{
	return u->right != RIGHT_TOKENS || !*u->who->parent;
}

static bool is_of_all(const struct access_who *w)
{
	return strcmp(w->owner, ALL_OWNERS) == 0;
}

static bool check_SERVER(const struct use *u)
{
	return u->right != RIGHT_SERVER || is_of_all(u->who) || u->when->one_owner;
}

static bool check_OWNER(const struct use *u)
{
	return !u->what->owner || is_of_all(u->who) || strcmp(u->who->owner, u->what->owner) == 0;
}

static bool check_SANDBOX(const struct use *u)
{
	return !u->what->owner || !*u->who->sandbox ||
	       (u->what->sandbox && strcmp(u->who->sandbox, u->what->sandbox) == 0);
}

/* Whether the JSON object has the member with this value. */
static bool has_label(const char *object, const char *name, const char *value)
{
	struct json_in j;
	struct json_level l;
	const char *key;
	bool found = false;

	json_in_init(&j, (const uint8_t *)object, strlen(object));
	if (json_in_open(&j, '{', &l)) {
		while (json_in_next(&j, &l, &key)) {
			bool same = strcmp(key, name) == 0;
			auto_buf text = { 0 };

			json_in_string(&j, &text);
			found |= same && !j.bad && strcmp(buf_text(&text), value) == 0;
		}
	}
	json_in_free(&j);
	return found;
}

bool access_labels_match(const char *wanted, const char *there)
{
	struct json_in j;
	struct json_level l;
	const char *key;
	bool all = there;

	json_in_init(&j, (const uint8_t *)wanted, strlen(wanted));
	if (json_in_open(&j, '{', &l)) {
		while (all && json_in_next(&j, &l, &key)) {
			auto_free char *name = strdup(key);
			auto_buf value = { 0 };

			json_in_string(&j, &value);
			all = name && has_label(there, name, buf_text(&value));
		}
	}
	all = all && json_in_end(&j);
	json_in_free(&j);
	return all;
}

static bool check_LABELS(const struct use *u)
{
	return !u->what->owner || !*u->who->labels ||
	       access_labels_match(u->who->labels, u->what->labels);
}

static bool check_TEMPLATE(const struct use *u)
{
	return !u->what->owner || !*u->who->templates ||
	       (u->what->template && access_list_has(u->who->templates, u->what->template));
}

static bool check_ENGINE(const struct use *u)
{
	return !u->what->owner || !*u->who->engines ||
	       (u->what->engine && access_list_has(u->who->engines, u->what->engine));
}

static const struct {
	const char *name, *why;
	unsigned status;
	bool (*passes)(const struct use *u);
} checks[ACCESS_CHECKS] = {
	[ACCESS_ALLOWED] = { "", "", 200, NULL },
#define CHECK(id, name, status, why) [ACCESS_##id] = { name, why, status, check_##id },
#include "daemon/access.def"
};

enum access_check access_decide(const struct access_who *who, enum access_right right,
				const struct access_what *what, const struct access_when *when)
{
	const struct use u = { who, right, what, when };

	for (int i = ACCESS_ALLOWED + 1; i < ACCESS_CHECKS; i++)
		if (!checks[i].passes(&u))
			return (enum access_check)i;
	return ACCESS_ALLOWED;
}

const char *access_check_name(enum access_check c)
{
	return checks[c].name;
}

const char *access_check_why(enum access_check c)
{
	return checks[c].why;
}

unsigned access_check_status(enum access_check c)
{
	return checks[c].status;
}

const char *access_role_name(enum access_role r)
{
	return r > ROLE_NONE && r < ROLES ? roles[r].name : "none";
}

enum access_role access_role_find(const char *name)
{
	for (int i = ROLE_NONE + 1; i < ROLES; i++)
		if (strcmp(roles[i].name, name) == 0)
			return (enum access_role)i;
	return ROLE_NONE;
}

const char *access_right_name(enum access_right r)
{
	static const char *const names[RIGHTS] = {
		[RIGHT_OPEN] = "open",
#define RIGHT(id, name, what) [RIGHT_##id] = name,
#include "daemon/access.def"
	};

	return r < RIGHTS ? names[r] : "";
}

/* -- the body of a request for a token */

static bool wrong(struct access_request *q, const char *why)
{
	if (!*q->wrong)
		snprintf(q->wrong, sizeof(q->wrong), "%s", why);
	return false;
}

static void read_text(struct json_in *j, char *ret, size_t n, struct access_request *q,
		      const char *why)
{
	auto_buf text = { 0 };

	json_in_string(j, &text);
	if (text.failed || text.len >= n)
		wrong(q, why);
	else
		memcpy(ret, buf_text(&text), text.len + 1);
}

/* An array of words, as one text with commas between. */
static void read_list(struct json_in *j, char ret[ACCESS_LIMIT_MAX + 1], struct access_request *q,
		      bool (*fits)(const char *word), const char *why)
{
	struct json_level l;
	auto_buf all = { 0 };

	if (!json_in_open(j, '[', &l)) {
		j->bad = true;
		return;
	}
	while (json_in_next(j, &l, NULL)) {
		auto_buf word = { 0 };

		json_in_string(j, &word);
		if (!j->bad && !fits(buf_text(&word)))
			wrong(q, why);
		buf_printf(&all, "%s%s", all.len ? "," : "", buf_text(&word));
	}
	/* an empty list would be no limit at all */
	if (!all.len || all.failed || all.len > ACCESS_LIMIT_MAX)
		wrong(q, why);
	else
		memcpy(ret, all.data, all.len + 1);
}

static bool is_engine(const char *word)
{
	static const char *const names[] = { "native", "gvisor", "vm", "wasm" };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strcmp(word, names[i]) == 0)
			return true;
	return false;
}

static bool is_source(const char *word)
{
	struct ip block;
	unsigned bits;

	return read_block(word, strlen(word), &block, &bits);
}

static void read_labels(struct json_in *j, struct access_request *q)
{
	auto_buf text = { 0 };
	struct json out = { .out = &text };
	struct json_level l;
	const char *key;
	unsigned count = 0;

	if (!json_in_open(j, '{', &l)) {
		j->bad = true;
		return;
	}
	json_begin_object(&out, NULL);
	while (json_in_next(j, &l, &key)) {
		auto_free char *name = strdup(key);
		auto_buf value = { 0 };

		json_in_string(j, &value);
		json_string(&out, name ? name : "", buf_text(&value));
		count++;
	}
	json_end_object(&out);
	if (!count || text.failed || text.len > ACCESS_LIMIT_MAX)
		wrong(q, "labels: an object of one or more texts, of less than 512 characters");
	else
		memcpy(q->who.labels, text.data, text.len + 1);
}

static void read_ttl(struct json_in *j, struct access_request *q)
{
	char text[16] = "";
	const uint8_t *at;

	if (json_in_peek(j) < '0' || json_in_peek(j) > '9') {
		j->bad = true;
		return;
	}
	at = j->at;
	json_in_skip(j);
	if ((size_t)(j->at - at) < sizeof(text))
		memcpy(text, at, (size_t)(j->at - at));
	q->ttl_s = text[strspn(text, "0123456789")] ? 0 : strtoll(text, NULL, 10);
}

static void read_member(struct json_in *j, const char *key, struct access_request *q)
{
	char role[32] = "";

	if (strcmp(key, "role") == 0) {
		read_text(j, role, sizeof(role), q, "role: too long");
		q->who.role = access_role_find(role);
	} else if (strcmp(key, "ttl") == 0) {
		read_ttl(j, q);
	} else if (strcmp(key, "name") == 0) {
		read_text(j, q->who.name, sizeof(q->who.name), q, "name: at most 63 characters");
	} else if (strcmp(key, "sandboxID") == 0) {
		read_text(j, q->who.sandbox, sizeof(q->who.sandbox), q, "sandboxID: no id");
		if (!route_is_id(q->who.sandbox, strlen(q->who.sandbox)))
			wrong(q, "sandboxID: not the id of a sandbox");
	} else if (strcmp(key, "labels") == 0) {
		read_labels(j, q);
	} else if (strcmp(key, "templates") == 0) {
		read_list(j, q->who.templates, q, route_is_template, "templates: names");
	} else if (strcmp(key, "engines") == 0) {
		read_list(j, q->who.engines, q, is_engine, "engines: native, gvisor, vm, wasm");
	} else if (strcmp(key, "sources") == 0) {
		read_list(j, q->who.sources, q, is_source,
			  "sources: addresses and blocks, like 10.0.0.0/8");
	} else if (strcmp(key, "hours") == 0) {
		read_text(j, q->who.hours, sizeof(q->who.hours), q, "hours: HH:MM-HH:MM, UTC");
		int from, to;

		if (!read_hours(q->who.hours, &from, &to))
			wrong(q, "hours: HH:MM-HH:MM, UTC");
	} else { /* an unknown limit that were skipped would be one that does not hold */
		json_in_skip(j);
		wrong(q, "known are role, ttl, name, sandboxID, labels, templates, engines, "
			 "sources and hours");
	}
}

bool access_read_request(const uint8_t *bytes, size_t n, bool key, struct access_request *ret)
{
	struct json_in j;
	struct json_level l;
	const char *member;
	bool fine;

	*ret = (struct access_request){ .who.role = key ? ROLE_ADMIN : ROLE_NONE };
	json_in_init(&j, bytes, n);
	if (json_in_open(&j, '{', &l)) {
		while (json_in_next(&j, &l, &member)) {
			char name[32];

			snprintf(name, sizeof(name), "%s", member);
			read_member(&j, name, ret);
		}
	}
	fine = json_in_end(&j);
	json_in_free(&j);
	if (!fine) {
		*ret->wrong = '\0';
		return wrong(ret, "the body is not JSON of the form that this call has");
	}
	if (ret->who.role == ROLE_NONE)
		return wrong(ret, "role: viewer, runner, operator, approver or admin");
	if (!key && (ret->ttl_s < 1 || ret->ttl_s > TOKEN_TTL_MAX_S))
		return wrong(ret, "ttl: 1 to 2592000 seconds");
	return !*ret->wrong;
}
