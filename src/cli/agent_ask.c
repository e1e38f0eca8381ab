/*
 * What an agent gets beside its profile. In: the agent, the caller's environment, a terminal. Out:
 * words for a command line of ward run. Two things:
 *
 *	a key	of the agent's own service that the caller's environment holds (KEY in
 *		tables/agents.def). It never goes inside: it becomes a grant, so that the sandbox
 *		has a placeholder and the gateway puts the key into requests to that one host.
 *		On a terminal the user is asked first; elsewhere it is used, as the agent itself
 *		would use it, and that is said.
 *	a limit	of what a run may cost, where the gateway can count it (METERED): asked for once
 *		on a terminal, elsewhere there is none.
 *
 * Answers are kept (state/answers.c); `ward agent set` changes them. All of it is --default: what a
 * policy file says counts more.
 */
#include "cli/agent.h"

#include <errno.h>
#include <string.h>

#include "base/json.h"
#include "cli/question.h"
#include "policy/policy_rule.h"
#include "policy/units.h"
#include "state/answers.h"

#define SPEND "spend"
#define KEY_WORD "key"
#define KEY_BYTES_MIN 8 /* a shorter one is refused as a secret */

static const struct key_row {
	char agent[16], variable[28], host[40], header[32];
} keys[] = {
#define KEY(agent, variable, host, header) { agent, variable, host, header },
#include "agents.def"
};

static const struct {
	char agent[16], host[40];
} metered[] = {
#define METERED(agent, host) { agent, host },
#include "agents.def"
};

/* -- questions */

static int ask_key(const struct agent *a, const struct key_row *k, bool *ret_yes,
		   struct ward_err *e)
{
	auto_buf question = { 0 };

	buf_printf(
		&question,
		"%s is set. Let %s use it? The key stays outside the sandbox: ward puts it into\n"
		"requests to %s only. [Y/n] ",
		k->variable, a->name, k->host);
	return question_yes(buf_text(&question), true, ret_yes, e);
}

static bool is_limit(const char *text)
{
	uint64_t unused;

	return strcmp(text, "none") == 0 || (units_parse_money(text, &unused) == 0 && unused);
}

static int ask_spend(const struct agent *a, struct buf *ret, struct ward_err *e)
{
	auto_buf question = { 0 };
	char answer[32];

	buf_printf(
		&question,
		"The most that one run of %s may cost at its API, in dollars (Enter: no limit): ",
		a->name);
	for (int i = 0; i < QUESTION_TRIES; i++) {
		const char *text = answer;
		int r = question_line(buf_text(&question), answer, sizeof(answer), e);

		if (r < 0)
			return r;
		text += *text == '$';
		if (!*text)
			text = "none";
		if (is_limit(text)) {
			buf_puts(ret, text);
			return 0;
		}
	}
	return question_fail(e);
}

/* -- keys */

static void answer_name(const char *variable, char ret[48])
{
	snprintf(ret, 48, KEY_WORD ".%s", variable);
}

static void say_used(const struct agent *a, const struct key_row *k)
{
	auto_buf out = { 0 };

	buf_printf(
		&out,
		"ward: %s may use %s for %s; the key stays outside the sandbox (ward agent set %s "
		"key=no: never)\n",
		a->name, k->variable, k->host, a->name);
	say_err(&out);
}

/* Whether the key is to be used: as answered, or as asked now. */
static int is_wanted(const struct agent *a, const struct key_row *k, bool asks, bool *ret_yes,
		     struct ward_err *e)
{
	auto_buf kept = { 0 };
	char name[48];
	int r;

	answer_name(k->variable, name);
	r = answers_get(a->name, name, &kept, e);
	if (r < 0)
		return r;
	*ret_yes = strcmp(buf_text(&kept), "no") != 0;
	if (strcmp(buf_text(&kept), "yes") == 0 || !*ret_yes)
		return 0;
	if (!asks) {
		say_used(a, k);
		return 0;
	}
	r = ask_key(a, k, ret_yes, e);
	return r < 0 ? r : answers_put(a->name, name, *ret_yes ? "yes" : "no", e);
}

static void put_grant(const struct key_row *k, struct buf *out)
{
	struct json j = { .out = out };

	json_begin_object(&j, NULL);
	json_string(&j, "name", k->variable);
	buf_printf(out, ",\"source\":\"env:%s\"", k->variable);
	json_begin_array(&j, "hosts");
	json_string(&j, NULL, k->host);
	json_end_array(&j);
	json_string(&j, "header", k->header);
	json_end_object(&j);
}

static int add_keys(const struct agent *a, bool asks, struct strv *words, struct ward_err *e)
{
	const char *done = ""; /* the rows of a host stand together */
	auto_buf grants = { 0 };

	for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
		const struct key_row *k = &keys[i];
		const char *value = getenv(k->variable);
		bool yes;
		int r;

		if (strcmp(k->agent, a->name) != 0 || !value || strcmp(done, k->host) == 0 ||
		    strlen(value) < KEY_BYTES_MIN)
			continue;
		done = k->host;
		r = is_wanted(a, k, asks, &yes, e);
		if (r < 0)
			return r;
		if (!yes)
			continue;
		buf_puts(&grants, grants.len ? ", " : "[");
		put_grant(k, &grants);
	}
	if (!grants.len)
		return 0;
	strv_add(words, "--default=credentials.mode=just_in_time");
	strv_addf(words, "--default=credentials.grants=%s]", buf_text(&grants));
	words->failed |= grants.failed;
	return 0;
}

/* -- the spend limit */

static bool is_metered(const struct agent *a, const char *host)
{
	for (size_t i = 0; i < ARRAY_LEN(metered); i++)
		if (strcmp(metered[i].agent, a->name) == 0 &&
		    (!host || strcmp(metered[i].host, host) == 0))
			return true;
	return false;
}

/* The profile's rules, with those counted that cost money. *ret_any: there is one. */
static int put_rules(const struct agent *a, struct buf *out, bool *ret_any, struct ward_err *e)
{
	const struct strv *rules = &a->profile.net_egress;

	*ret_any = false;
	for (size_t i = 0; i < rules->len; i++) {
		struct policy_rule rule;
		int r = policy_rule_read(rules->items[i], &rule, e);

		if (r < 0)
			return r;
		buf_puts(out, i ? ", " : "[");
		if (is_metered(a, rule.host)) {
			buf_printf(out, "{\"host\": \"%s\", \"llm\": true}", rule.host);
			*ret_any = true;
		} else {
			buf_puts(out, rules->items[i]);
		}
	}
	buf_puts(out, "]");
	return 0;
}

static int add_limit(const struct agent *a, bool asks, struct strv *words, struct ward_err *e)
{
	auto_buf limit = { 0 }, rules = { 0 };
	bool any = false, asked;
	int r;

	if (!is_metered(a, NULL))
		return 0;
	r = put_rules(a, &rules, &any, e);
	if (r == 0)
		r = answers_get(a->name, SPEND, &limit, e);
	if (r < 0 || !any)
		return r;
	asked = asks && !is_limit(buf_text(&limit));
	if (asked) {
		limit.len = 0;
		r = ask_spend(a, &limit, e);
		if (r == 0)
			r = answers_put(a->name, SPEND, buf_text(&limit), e);
	}
	if (r < 0 || !limit.len || strcmp(buf_text(&limit), "none") == 0)
		return r;
	if (!is_limit(buf_text(&limit)))
		return ward_fail(e, EINVAL, "the spend limit that is kept for %s is unreadable",
				 a->name);
	strv_addf(words, "--default=network.egress_allowlist=%s", buf_text(&rules));
	strv_addf(words, "--default=network.spend_limit=%s", buf_text(&limit));
	words->failed |= rules.failed || limit.failed;
	return 0;
}

int agent_add_wishes(const struct agent *a, bool asks, struct strv *words, struct ward_err *e)
{
	int r = add_keys(a, asks, words, e);

	return r < 0 ? r : add_limit(a, asks, words, e);
}

/* -- ward agent set */

static int set_keys(const struct agent *a, const char *value, struct ward_err *e)
{
	bool any = false;
	int r = 0;

	if (strcmp(value, "yes") != 0 && strcmp(value, "no") != 0 && strcmp(value, "ask") != 0)
		return ward_fail(e, EINVAL, "key=%.40s: expected yes, no or ask", value);
	for (size_t i = 0; i < ARRAY_LEN(keys) && r == 0; i++) {
		char name[48];

		if (strcmp(keys[i].agent, a->name) != 0)
			continue;
		any = true;
		answer_name(keys[i].variable, name);
		r = answers_put(a->name, name, strcmp(value, "ask") == 0 ? NULL : value, e);
	}
	if (r == 0 && !any)
		return ward_fail(e, EINVAL, "%s has no API key that ward knows of", a->name);
	return r;
}

static int set_limit(const struct agent *a, const char *value, struct ward_err *e)
{
	bool ask = strcmp(value, "ask") == 0;

	if (!ask && !is_limit(value))
		return ward_fail(e, EINVAL, "spend=%.40s: expected an amount, none or ask", value);
	if (!is_metered(a, NULL))
		return ward_fail(e, EINVAL, "ward cannot count what requests of %s cost", a->name);
	return answers_put(a->name, SPEND, ask ? NULL : value, e);
}

int agent_set(const struct options *o)
{
	struct ward_err e = { 0 };
	struct agent a;
	int r = agent_open(o->words[1], &a, &e);

	if (r < 0)
		return say_error(&e, o->json, EXIT_REFUSED);
	for (size_t i = 2; i < o->word_count && r == 0; i++) {
		const char *word = o->words[i];

		if (strncmp(word, KEY_WORD "=", 4) == 0)
			r = set_keys(&a, word + 4, &e);
		else if (strncmp(word, SPEND "=", 6) == 0)
			r = set_limit(&a, word + 6, &e);
		else
			r = ward_fail(&e, EINVAL, "%.60s: expected key=... or spend=...", word);
	}
	agent_close(&a);
	return r < 0 ? say_error(&e, o->json, r == -EINVAL ? EXIT_USAGE : EXIT_REFUSED) : EXIT_FINE;
}
