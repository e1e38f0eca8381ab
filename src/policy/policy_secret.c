/*
 * --secret: a grant in one word. In: NAME[=SOURCE]@HOST[,HOST...][:PLACE] as the user typed it.
 * Out: the same as an entry of credentials.grants, in JSON, which the policy's reader then checks
 * as it does one of a file; or a refusal with the form that was expected. Without a source it is
 * the variable NAME of the caller; without a place tables/secret_places.def is asked, by the name
 * and then by the host. The last @ separates, so a source may contain others. A source that is none
 * is never repeated in a message: it may be the secret itself. Pure functions over text, fuzzed
 * (fuzz/secret.c); run by `ward` with the user's rights, only where the option is used.
 */
#include "policy/policy_secret.h"

#include <errno.h>
#include <string.h>

#include "base/json.h"
#include "base/text.h"
#include "policy/policy_grant.h"

#define DEFAULT_PLACE "Authorization: Bearer {}"
#define EXAMPLE "--secret OPENAI_API_KEY@api.openai.com"

static const struct {
	char name[24], host[36], place[28];
} by_name[] = {
#define NAMED(name, host, place) { name, host, place },
#include "secret_places.def"
};

static const struct {
	char host[36], place[28];
} by_host[] = {
#define HOSTED(host, place) { host, place },
#include "secret_places.def"
};

/* The option taken apart; texts are owned. */
struct parts {
	char *name, *source; /* source NULL: the variable itself */
	struct strv hosts;
	const char *place; /* borrowed; NULL: not given */
};

static void parts_clear(struct parts *p)
{
	free(p->name);
	free(p->source);
	strv_free(&p->hosts);
}

static bool is_variable(const char *name)
{
	static const char letters[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789";

	return *name && !(*name >= '0' && *name <= '9') && strlen(name) <= 64 &&
	       strspn(name, letters) == strlen(name);
}

/* No host: the one of a well-known name is proposed. */
static int fail_no_host(const char *name, struct ward_err *e)
{
	ward_fail(e, EINVAL, "expected NAME@HOST: the host that the secret goes to is missing");
	for (size_t i = 0; i < ARRAY_LEN(by_name); i++)
		if (strcmp(by_name[i].name, name) == 0)
			return ward_remedy(e, "for instance --secret %s@%s", name, by_name[i].host);
	return ward_remedy(e, "for instance " EXAMPLE);
}

static int split_name(struct parts *p, const char *text, size_t n, struct ward_err *e)
{
	const char *equals = memchr(text, '=', n), *expected, *hint;
	size_t name = equals ? (size_t)(equals - text) : n;
	auto_buf shown = { 0 };

	p->name = strndup(text, name);
	p->source = equals ? strndup(equals + 1, n - name - 1) : NULL;
	if (!p->name || (equals && !p->source))
		return ward_fail(e, ENOMEM, "out of memory");
	if (!is_variable(p->name)) {
		text_escape(&shown, p->name);
		ward_fail(e, EINVAL,
			  "%.80s: expected the name of a variable before @ or =", buf_text(&shown));
		return ward_remedy(e, "letters, digits and _, for instance " EXAMPLE);
	}
	if (!p->source || grant_source_is_sound(p->source, &expected, &hint))
		return 0;
	ward_fail(e, EINVAL, "%s: expected %s behind =", p->name, expected);
	return ward_remedy(e, "%s",
			   hint ? hint : "name the source of the secret, never the secret itself");
}

static int split_hosts(struct parts *p, const char *text, struct ward_err *e)
{
	size_t n = strcspn(text, ":");

	p->place = text[n] ? text + n + 1 : NULL;
	for (size_t at = 0; at < n;) {
		size_t len = strcspn(text + at, ",:");

		strv_addf(&p->hosts, "%.*s", (int)len, text + at);
		at += len + 1;
	}
	if (p->hosts.failed)
		return ward_fail(e, ENOMEM, "out of memory");
	return p->hosts.len ? 0 : fail_no_host(p->name, e);
}

static const char *place_of(const char *name, const char *host)
{
	for (size_t i = 0; i < ARRAY_LEN(by_name); i++)
		if (strcmp(by_name[i].name, name) == 0)
			return by_name[i].place;
	for (size_t i = 0; i < ARRAY_LEN(by_host); i++)
		if (strcmp(by_host[i].host, host) == 0)
			return by_host[i].place;
	return DEFAULT_PLACE;
}

/* One secret has one place; hosts that want it elsewhere need a secret of their own. */
static int choose_place(struct parts *p, struct ward_err *e)
{
	const char *first = place_of(p->name, p->hosts.items[0]);

	if (p->place)
		return 0;
	for (size_t i = 1; i < p->hosts.len; i++) {
		if (strcmp(place_of(p->name, p->hosts.items[i]), first) == 0)
			continue;
		ward_fail(e, EINVAL, "%s: %.80s and %.80s want the secret in different places",
			  p->name, p->hosts.items[0], p->hosts.items[i]);
		return ward_remedy(e,
				   "give each a --secret and a variable of its own: "
				   "OTHER_NAME=env:%s@%.80s",
				   p->name, p->hosts.items[i]);
	}
	p->place = first;
	return 0;
}

/* A header with {}, the bare name of one, basic=USER, or query=NAME. */
static int put_place(struct json *j, const struct parts *p, struct ward_err *e)
{
	const char *place = p->place, *expected, *hint;
	auto_buf header = { 0 }, shown = { 0 };

	if (strncmp(place, "basic=", 6) == 0 || strncmp(place, "query=", 6) == 0) {
		json_string(j, *place == 'b' ? "basic" : "query", place + 6);
		if (place[6])
			return 0;
	} else {
		buf_puts(&header, place);
		if (*place && !strpbrk(place, ":{} "))
			buf_puts(&header, ": {}");
		if (header.failed)
			return ward_fail(e, ENOMEM, "out of memory");
		json_string(j, "header", buf_text(&header));
		if (strspn(place, "0123456789") < strlen(place) && /* not a port */
		    grant_header_is_sound(buf_text(&header), &expected, &hint))
			return 0;
	}
	text_escape(&shown, place);
	ward_fail(e, EINVAL,
		  "%s: expected a header, \"HEADER: TEXT {}\", basic=USER or query=NAME behind the "
		  "host, found \"%.80s\"",
		  p->name, buf_text(&shown));
	return ward_remedy(e, "for instance --secret %s@%.80s:x-api-key; a secret goes to port 443",
			   p->name, p->hosts.items[0]);
}

static int put_grant(const struct parts *p, struct buf *ret, struct ward_err *e)
{
	struct json j = { .out = ret };
	auto_buf source = { 0 };
	int r;

	buf_printf(&source, "%s%s", p->source ? "" : "env:", p->source ? p->source : p->name);
	json_begin_object(&j, NULL);
	json_string(&j, "name", p->name);
	json_string(&j, "source", buf_text(&source));
	json_begin_array(&j, "hosts");
	for (size_t i = 0; i < p->hosts.len; i++)
		json_string(&j, NULL, p->hosts.items[i]);
	json_end_array(&j);
	r = put_place(&j, p, e);
	json_string(&j, "as", p->name);
	json_end_object(&j);
	return r == 0 && (ret->failed || source.failed) ? ward_fail(e, ENOMEM, "out of memory") : r;
}

int secret_option_read(const char *text, struct buf *ret, struct ward_err *e)
{
	__attribute__((cleanup(parts_clear))) struct parts p = { 0 };
	const char *at = strrchr(text, '@');
	int r;

	if (!text_is_utf8(text))
		return ward_fail(e, EINVAL, "the value is not UTF-8");
	if (!at)
		return fail_no_host(text, e);
	r = split_name(&p, text, (size_t)(at - text), e);
	if (r == 0)
		r = split_hosts(&p, at + 1, e);
	if (r == 0)
		r = choose_place(&p, e);
	return r < 0 ? r : put_grant(&p, ret, e);
}
