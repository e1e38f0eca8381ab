/*
 * The secrets of one sandbox, from the first fetch to the last use. In: grants. Out: values in
 * locked memory, placeholders, and the order to ward-keys what it may use until when. A value lives
 * for its ttl or its lease, whichever is shorter; before that its source is asked again. One that
 * cannot be renewed runs out and is not used any more. Runs in ward-secrets.
 */
#include "creds/keeper.h"

#include <errno.h>
#include <string.h>
#include <sys/random.h>

#include "base/io.h"
#include "creds/placeholder.h"

#define RETRY_MS 10000

static void drop(struct keeper *k, struct kept *g)
{
	if (!g)
		return;
	secret_forget(&k->safe, &g->secret);
	for (size_t i = 0; i < g->earlier_count; i++)
		safe_give(&k->safe, g->earlier[i].value);
	for (size_t i = 0; i < GRANT_VALUES; i++)
		free(g->shown[i]);
	policy_grant_clear(&g->grant);
	free(g->line);
	free(g);
}

static struct source_place place_of(struct keeper *k)
{
	return (struct source_place){ .safe = &k->safe,
				      .seen = &k->seen,
				      .program_dir_fd = k->program_dir_fd,
				      .meanwhile = &k->meanwhile };
}

static int make_placeholder(struct kept *g, size_t i, struct ward_err *e)
{
	size_t n = g->secret.bytes[i], same = 0;
	auto_free uint8_t *random = malloc(n);
	uint8_t *shown = malloc(n + 1);

	g->shown[i] = shown;
	g->shown_bytes[i] = n;
	if (!shown || !random || getrandom(random, n, 0) != (ssize_t)n)
		return ward_fail(e, ENOMEM, "cannot make a placeholder");
	placeholder_write(g->secret.values[i], n, random, shown);
	shown[n] = '\0';
	for (size_t k = 0; k < n; k++)
		same += shown[k] == g->secret.values[i][k];
	if (n - same < 6)
		return ward_fail(
			e, EINVAL,
			"the secret has too few letters and digits to be recognized in other text");
	return 0;
}

/* How long the value counts, and when its source is asked again: a fifth of the time before, a
 * minute at most. */
static void set_times(struct kept *g, uint64_t now)
{
	uint64_t ttl = g->grant.ttl_ms, early;

	if (g->secret.lease_ms && g->secret.lease_ms < ttl)
		ttl = g->secret.lease_ms;
	early = ttl / 5 < 60000 ? ttl / 5 : 60000;
	g->expires_at_ms = now + ttl;
	g->renew_at_ms = g->grant.from == GRANT_HANDED ? 0 : now + ttl - early;
	g->reported = false;
}

/* Whether a new grant and one that there is go together. */
static int goes_with(const struct kept *there, const struct kept *g, struct ward_err *e)
{
	if (there->state == SECRET_REVOKED)
		return 0;
	if (strcmp(there->grant.name, g->grant.name) == 0) {
		ward_fail(e, EEXIST, "the sandbox already has a grant %s", g->grant.name);
		return ward_remedy(e, "choose another name, or revoke that grant first");
	}
	return grants_overlap(&g->grant, &there->grant)
		       ? grants_refuse_overlap(&g->grant, &there->grant, e)
		       : 0;
}

int keeper_add(struct keeper *k, const char *line, int fd, struct ward_err *e)
{
	struct source_place place = place_of(k);
	struct kept *g = calloc(1, sizeof(*g));
	int r = g ? policy_grant_read(line, &g->grant, e) : ward_fail(e, ENOMEM, "out of memory");

	if (r == 0 && !(g->line = strdup(line)))
		r = ward_fail(e, ENOMEM, "out of memory");
	for (size_t i = 0; r == 0 && i < k->count; i++)
		r = goes_with(k->kept[i], g, e);
	if (r == 0 && k->count == GRANTS_MAX)
		r = ward_fail(e, E2BIG, "more than %d grants", GRANTS_MAX);
	if (r == 0) {
		if (fd >= 0)
			g->grant.from = GRANT_HANDED;
		r = fd >= 0 ? source_read(&place, &g->grant, fd, &g->secret, e)
			    : source_fetch(&place, &g->grant, &g->secret, e);
		if (r < 0)
			ward_wrap(e, "the secret of grant %s", g->grant.name);
	}
	for (size_t i = 0; r == 0 && i < g->secret.count; i++)
		r = make_placeholder(g, i, e);
	if (r < 0) {
		drop(k, g);
		return r;
	}
	set_times(g, io_now_ms());
	k->kept[k->count++] = g;
	return 0;
}

void keeper_undo(struct keeper *k)
{
	drop(k, k->kept[--k->count]);
	k->kept[k->count] = NULL;
}

int keeper_revoke(struct keeper *k, const char *name, struct ward_err *e)
{
	for (size_t i = 0; i < k->count; i++) {
		struct kept *g = k->kept[i];

		if (strcmp(g->grant.name, name) != 0 || g->state == SECRET_REVOKED)
			continue;
		g->state = SECRET_REVOKED;
		g->renew_at_ms = 0;
		keys_tell_revoked(k, i);
		/* its value is kept: it must still not leak, and every scanner that is made from
		 * now on looks for it */
		return 0;
	}
	ward_fail(e, ENOENT, "the sandbox has no grant %.64s", name);
	return ward_remedy(e, "ward secret ls lists them");
}

enum secret_state keeper_state(const struct kept *g, uint64_t now)
{
	if (g->state == SECRET_REVOKED)
		return SECRET_REVOKED;
	if (g->grant.max_uses != POLICY_NONE && g->uses >= g->grant.max_uses)
		return SECRET_SPENT;
	return now >= g->expires_at_ms ? SECRET_EXPIRED : SECRET_LIVE;
}

static void tell_failure(struct keeper *k, struct kept *g, const struct ward_err *why)
{
	struct keys_event event = { .kind = KEYS_EVENT_REFUSED };

	if (g->reported)
		return;
	g->reported = true;
	snprintf(event.grant, sizeof(event.grant), "%s", g->grant.name);
	snprintf(event.detail, sizeof(event.detail), "could not be renewed: %.90s", why->why);
	control_event(k, &event);
}

static bool is_earlier(const struct kept *g, const uint8_t *value, size_t n)
{
	for (size_t i = 0; i < g->earlier_count; i++)
		if (g->earlier[i].bytes == n && memcmp(g->earlier[i].value, value, n) == 0)
			return true;
	return false;
}

/* Puts the grant's values among the earlier ones, which then hold the same memory. */
static int remember(struct kept *g, struct ward_err *e)
{
	for (size_t i = 0; i < g->secret.count; i++) {
		if (is_earlier(g, g->secret.values[i], g->secret.bytes[i]))
			continue;
		if (g->earlier_count == EARLIER_MAX)
			return ward_fail(e, ENOSPC,
					 "it has had %d values, the maximum; start a new run",
					 EARLIER_MAX);
		g->earlier[g->earlier_count].value = g->secret.values[i];
		g->earlier[g->earlier_count].bytes = g->secret.bytes[i];
		g->earlier[g->earlier_count++].which = i;
	}
	return 0;
}

/* Gives back what of last is not held as one of the earlier values. */
static void forget_known(struct keeper *k, const struct kept *g, struct secret *last)
{
	for (size_t i = 0; i < last->count; i++) {
		bool held = false;

		for (size_t v = 0; v < g->earlier_count; v++)
			held |= g->earlier[v].value == last->values[i];
		if (!held)
			safe_give(&k->safe, last->values[i]);
	}
	*last = (struct secret){ 0 };
}

/* The grant gets another value. The one that it had is looked for until the run ends, and the new
 * one before it is used: where not all of them can be looked for, the grant keeps what it has, and
 * runs out. */
static int change_value(struct keeper *k, struct kept *g, struct secret *fresh, struct ward_err *e)
{
	struct secret last = g->secret;
	size_t before = g->earlier_count;
	int r = remember(g, e);

	if (r == 0) {
		g->secret = *fresh;
		r = keys_tell_scanner(k, e);
	}
	if (r < 0) {
		g->secret = last;
		g->earlier_count = before;
		secret_forget(&k->safe, fresh);
		return r;
	}
	forget_known(k, g, &last);
	return 0;
}

static void renew_one(struct keeper *k, size_t number, uint64_t now)
{
	struct source_place place = place_of(k);
	struct kept *g = k->kept[number];
	struct secret fresh;
	struct ward_err e = { 0 };
	int r = source_fetch(&place, &g->grant, &fresh, &e);

	if (g->state == SECRET_REVOKED) { /* while its source was asked */
		if (r >= 0)
			secret_forget(&k->safe, &fresh);
		return;
	}
	if (r < 0) {
		tell_failure(k, g, &e);
		g->renew_at_ms = now + RETRY_MS;
		return;
	}
	if (secret_equal(&fresh, &g->secret)) {
		secret_forget(&k->safe, &g->secret);
		g->secret = fresh;
	} else if (change_value(k, g, &fresh, &e) < 0) {
		g->reported = false;
		tell_failure(k, g, &e);
		/* its source would only make more values that cannot be looked for */
		g->renew_at_ms = 0;
		return;
	}
	set_times(g, io_now_ms());
	keys_tell_grant(k, number);
}

void keeper_renew(struct keeper *k, uint64_t now)
{
	for (size_t i = 0; i < k->count; i++)
		if (k->kept[i]->renew_at_ms && now >= k->kept[i]->renew_at_ms)
			renew_one(k, i, now);
}

uint64_t keeper_due(const struct keeper *k)
{
	uint64_t due = 0;

	for (size_t i = 0; i < k->count; i++)
		if (k->kept[i]->renew_at_ms && (!due || k->kept[i]->renew_at_ms < due))
			due = k->kept[i]->renew_at_ms;
	return due;
}

int keeper_check_words(const struct keeper *k, struct ward_err *e)
{
	for (size_t i = 0; i < k->count; i++)
		for (size_t v = 0; v < k->kept[i]->secret.count; v++)
			for (size_t w = 0; w < k->words.len; w++) {
				const char *word = k->words.items[w];
				size_t name = strcspn(word, "=");

				if (!memmem(word, strlen(word), k->kept[i]->secret.values[v],
					    k->kept[i]->secret.bytes[v]))
					continue;
				if (name > 60 || !word[name])
					ward_fail(
						e, EACCES,
						"the command line contains the secret of grant %s",
						k->kept[i]->grant.name);
				else
					ward_fail(e, EACCES,
						  "the secret of grant %s would be visible inside, "
						  "in the variable %.*s",
						  k->kept[i]->grant.name, (int)name, word);
				return ward_remedy(
					e, "remove it from process.env, --env and the command: the "
					   "sandbox needs only the placeholder");
			}
	return 0;
}

void keeper_row(const struct kept *g, uint64_t now, struct secrets_row *ret)
{
	static const char *const from[] = {
		"env:", "file:", "cmd:", "keyring:", "", "handed over"
	};
	auto_buf hosts = { 0 };

	memset(ret, 0, sizeof(*ret));
	snprintf(ret->name, sizeof(ret->name), "%s", g->grant.name);
	snprintf(ret->source, sizeof(ret->source), "%s%.130s", from[g->grant.from],
		 g->grant.from == GRANT_HANDED ? "" : g->grant.source);
	if (g->grant.way == GRANT_QUERY)
		snprintf(ret->place, sizeof(ret->place), "query %.60s", g->grant.parameter);
	else if (g->grant.way == GRANT_SIGV4)
		snprintf(ret->place, sizeof(ret->place), "sigv4 %.30s/%.30s", g->grant.region,
			 g->grant.service);
	else if (g->grant.way == GRANT_BASIC)
		snprintf(ret->place, sizeof(ret->place), "basic %.60s", g->grant.user);
	else
		snprintf(ret->place, sizeof(ret->place), "header %.64s", g->grant.header);
	for (size_t i = 0; i < g->grant.hosts.len; i++)
		buf_printf(&hosts, "%s%s", i ? " " : "", g->grant.hosts.items[i]);
	snprintf(ret->hosts, sizeof(ret->hosts), "%.255s", buf_text(&hosts));
	ret->state = keeper_state(g, now);
	ret->uses = g->uses;
	ret->max_uses = g->grant.max_uses;
	ret->expires_ms = ret->state == SECRET_LIVE ? g->expires_at_ms - now : 0;
}
