/*
 * Fuzzes the binding of arguments: values of one tool with a parameter of each kind, separated by
 * NUL. Whatever they are: what is accepted is the same number of argv elements, none of them an
 * option, a path outside of the scope, a host that it does not have, or text with control
 * characters.
 */
#include <assert.h>
#include <string.h>

#include "base/path.h"
#include "tools/bind.h"
#include "tools/bind_http.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static const char document[] =
	"{\"version\":1,\"tools\":{\"t\":{\"description\":\"d\",\"run\":[\"prog\",\"{text}\","
	"\"--count={count}\",\"{path}\",\"{out}\",\"{url}\",\"{host}\",\"{flag}\",\"{word}\"],"
	"\"parameters\":{\"text\":{},\"count\":{\"type\":\"integer\"},\"path\":{\"type\":\"path\"},"
	"\"out\":{\"type\":\"path\",\"access\":\"write\"},\"url\":{\"type\":\"url\"},"
	"\"host\":{\"type\":\"host\"},\"flag\":{\"type\":\"boolean\"},"
	"\"word\":{\"pattern\":\"[a-z]+\"}},"
	"\"scope\":{\"read\":[\"in\"],\"write\":[\"out\"],\"hosts\":[\"a.example.com\","
	"\"*.b.example.org:8443\"]},\"nature\":{}},"
	"\"h\":{\"description\":\"d\",\"http\":{\"url\":\"https://a.example.com/x/"
	"{text}?q={text}\","
	"\"headers\":{\"X-A\":\"{text}\"}},\"parameters\":{\"text\":{}},"
	"\"scope\":{\"hosts\":[\"a.example.com\"]},\"nature\":{}}}}";

static void check_call(const struct tools_call *c)
{
	assert(c->argv.len == 9);
	for (size_t i = 1; i < 9; i++) {
		for (const char *s = c->argv.items[i]; *s; s++)
			assert((unsigned char)*s >= 0x20 && *s != 0x7f);
		assert(i == 2 || c->argv.items[i][0] != '-');
	}
	assert(strncmp(c->argv.items[2], "--count=", 8) == 0);
	assert(strspn(c->argv.items[2] + 8, "-0123456789") == strlen(c->argv.items[2] + 8));
	assert(path_is_beneath(c->argv.items[3], "/w/in") ||
	       path_is_beneath(c->argv.items[3], "/w/out"));
	assert(path_is_beneath(c->argv.items[4], "/w/out"));
	assert(strncmp(c->argv.items[5], "https://a.example.com/", 22) == 0 ||
	       strncmp(c->argv.items[5], "https://a.example.com:443/", 26) == 0 ||
	       strncmp(c->argv.items[5], "https://a.example.com?", 22) == 0 ||
	       strncmp(c->argv.items[5], "https://a.example.com#", 22) == 0 ||
	       strstr(c->argv.items[5], ".b.example.org:8443"));
}

/* A request stays one URL of the host, and a header one line. */
static void check_http(const struct tools *t, const char *text)
{
	const struct tools_argument argument = { "text", text };
	struct tools_call c = { 0 };
	struct ward_err e = { 0 };

	if (tools_bind(t, tools_find(t, "h"), "/w", NULL, &argument, 1, &c, &e) == 0 &&
	    bind_http(tools_find(t, "h"), &c, &e) == 0) {
		const char *url = c.argv.items[c.argv.len - 1];

		assert(strncmp(url, "https://a.example.com/x/", 24) == 0);
		assert(strchr(url, '?') && !strchr(strchr(url, '?') + 1, '?'));
		assert(!strpbrk(url, " \"\\#"));
		for (size_t i = 0; i < c.argv.len; i++)
			assert(!strpbrk(c.argv.items[i], "\r\n"));
	}
	tools_call_free(&c);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	static const char *const names[] = { "text", "count", "path", "out",
					     "url",  "host",  "flag", "word" };
	struct tools_argument arguments[ARRAY_LEN(names)];
	static struct tools t; /* read once, for all runs */
	struct policy_errors errors = { 0 };
	char bytes[4096];
	struct tools_call c = { 0 };
	struct ward_err e = { 0 };
	size_t at = 0;

	if (n >= sizeof(bytes) - 1)
		return 0;
	memset(bytes, 0, sizeof(bytes));
	if (n)
		memcpy(bytes, data, n);
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		arguments[i] = (struct tools_argument){ names[i], bytes + at };
		at += at < n ? strlen(bytes + at) + 1 : 0;
	}
	if (!t.root)
		assert(tools_read(&t, "t.json", (const uint8_t *)document, strlen(document),
				  &errors) == 0);
	if (tools_bind(&t, tools_find(&t, "t"), "/w", "/home/u", arguments, ARRAY_LEN(names), &c,
		       &e) == 0)
		check_call(&c);
	else
		assert(*e.why);
	tools_call_free(&c);
	check_http(&t, bytes);
	strv_free(&errors.lines);
	return 0;
}
