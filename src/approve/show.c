/*
 * Showing what is asked for. In: a want of the gateway, whose host is canonical (hostname.h), the
 * rules. Out: texts of a struct question. The host was chosen by the sandbox, so its text must not
 * act on a terminal, and must not be taken for another: everything is escaped, a name in punycode
 * is marked, a name that looks like one of the rules, or like a well-known one, is marked, and long
 * text keeps its end, which is the part of a host name that somebody had to register. Pure. Fuzzed
 * (fuzz/approve.c).
 */
#include "approve/show.h"

#include <ctype.h>
#include <string.h>

#include "base/sha256.h"
#include "base/text.h"

#define HASH_DIGITS 12

/* Names that impostors imitate, beside those of the rules. */
static const char known_names[][24] = { "github.com",       "githubusercontent.com",
					"gitlab.com",       "registry.npmjs.org",
					"npmjs.org",        "pypi.org",
					"pythonhosted.org", "crates.io",
					"golang.org",       "google.com",
					"googleapis.com",   "amazonaws.com",
					"anthropic.com",    "openai.com",
					"debian.org",       "docker.io",
					"docker.com" };

void show_text(char *out, size_t cap, const char *text)
{
	char hash[SHA256_HEX];
	auto_buf escaped = { 0 };
	size_t room, head;

	text_escape(&escaped, text);
	if (escaped.failed || cap < 64) {
		snprintf(out, cap, "?");
		return;
	}
	if (escaped.len < cap) {
		memcpy(out, buf_text(&escaped), escaped.len + 1);
		return;
	}
	sha256_hex(text, strlen(text), hash);
	/* an escape that is cut is plain characters, and so is half of a UTF-8 sequence made */
	for (size_t i = 0; i < escaped.len; i++)
		if ((unsigned char)escaped.data[i] >= 0x80)
			escaped.data[i] = '?';
	room = cap - 1 - strlen("...") - strlen(" (sha256 )") - HASH_DIGITS;
	head = room / 3;
	snprintf(out, cap, "%.*s...%s (sha256 %.*s)", (int)head, escaped.data,
		 escaped.data + escaped.len - (room - head), HASH_DIGITS, hash);
}

/* A name as the eye reads it: what looks alike becomes the same. */
static void skeleton(const char *name, char out[HOST_TEXT])
{
	size_t n = 0;

	for (const char *c = name; *c && n + 1 < HOST_TEXT; c++) {
		if (c[0] == 'r' && c[1] == 'n') {
			out[n++] = 'm';
			c++;
		} else if (c[0] == 'v' && c[1] == 'v') {
			out[n++] = 'w';
			c++;
		} else if (*c != '-' && *c != '_') {
			out[n++] = *c == '0'                ? 'o'
				   : *c == '1' || *c == 'i' ? 'l'
				   : *c == '5'              ? 's'
							    : *c;
		}
	}
	out[n] = '\0';
}

static bool is_below(const char *name, const char *parent)
{
	size_t n = strlen(name), m = strlen(parent);

	return n >= m && strcmp(name + n - m, parent) == 0 && (n == m || name[n - m - 1] == '.');
}

const char *show_looks_like(const char *name, const char *known)
{
	char a[HOST_TEXT], b[HOST_TEXT];
	size_t n;

	if (strlen(known) < 5 || is_below(name, known))
		return NULL;
	/* "github.com.example.net": the known name stands in front of another one's */
	n = strlen(known);
	for (const char *at = strstr(name, known); at; at = strstr(at + 1, known))
		if ((at == name || at[-1] == '.' || at[-1] == '-') &&
		    (at[n] == '.' || at[n] == '-'))
			return known;
	skeleton(known, b);
	/* the name itself, or a part of it from a dot on, reads like the known one */
	for (const char *at = name; at; at = strchr(at, '.') ? strchr(at, '.') + 1 : NULL) {
		skeleton(at, a);
		if (strcmp(a, b) == 0 || (strlen(known) >= 8 && text_distance(at, known) == 1))
			return known;
	}
	return NULL;
}

static const char *find_alike(const struct rules *r, const char *name)
{
	const char *found = NULL;

	for (uint32_t i = 0; i < r->n_items; i++)
		if (!r->items[i].dead && r->items[i].len &&
		    is_below(name, r->text + r->items[i].host))
			return NULL; /* a rule names it: it is no impostor */
	for (size_t i = 0; i < ARRAY_LEN(known_names); i++)
		if (is_below(name, known_names[i]))
			return NULL;
	for (uint32_t i = 0; !found && i < r->n_items; i++)
		if (!r->items[i].dead && r->items[i].len)
			found = show_looks_like(name, r->text + r->items[i].host);
	for (size_t i = 0; !found && i < ARRAY_LEN(known_names); i++)
		found = show_looks_like(name, known_names[i]);
	return found;
}

size_t show_host_warnings(const struct rules *r, const struct want *w, struct question *ret)
{
	const char *name = w->host.kind == HOST_NAME ? w->host.name : "", *alike;
	size_t n = 0;

	alike = *name ? find_alike(r, name) : NULL;
	if (alike)
		snprintf(ret->details[n++], sizeof(ret->details[0]),
			 "warning: it looks like %.60s, and is another host", alike);
	if (strncmp(name, "xn--", 4) == 0 || strstr(name, ".xn--"))
		snprintf(ret->details[n++], sizeof(ret->details[0]),
			 "warning: a name in punycode (xn--): programs may show it in letters that "
			 "look like others");
	if (w->host.kind == HOST_ADDRESS)
		snprintf(ret->details[n++], sizeof(ret->details[0]),
			 "an address, not a name: its owner is not known");
	return n;
}

static void add_details(const struct rules *r, const struct want *w, const struct verdict *v,
			struct question *ret)
{
	static const char *const modes[RULE_MODES] = { [RULE_SPLICE] = "TLS to this name",
						       [RULE_HTTP] = "plain HTTP to this name",
						       [RULE_TCP] = "any protocol" };
	size_t n = show_host_warnings(r, w, ret);

	if (v->mode < RULE_MODES && modes[v->mode])
		snprintf(ret->details[n++], sizeof(ret->details[0]), "allows: %s%s", modes[v->mode],
			 v->private ? ", also at a private address" : "");
}

void show_line(const struct rules *r, const struct verdict *v, struct question *ret)
{
	static const char *const modes[RULE_MODES] = {
		[RULE_SPLICE] = "splice", [RULE_HTTP] = "http", [RULE_TCP] = "tcp"
	};
	const struct rule *rule =
		v->rule >= 0 && (uint32_t)v->rule < r->n_items ? &r->items[v->rule] : NULL;
	bool moded = rule && rule->moded && modes[rule->mode], six = strchr(ret->host, ':') != NULL;

	if (moded || six || (rule && rule->private)) {
		snprintf(ret->line, sizeof(ret->line), "{host: \"%s\", ports: [%u]%s%s%s}",
			 ret->host, ret->port, moded ? ", mode: " : "",
			 moded ? modes[rule->mode] : "",
			 rule && rule->private ? ", private: true" : "");
	} else if (ret->port == 443) {
		snprintf(ret->line, sizeof(ret->line), "%s", ret->host);
	} else {
		snprintf(ret->line, sizeof(ret->line), "%s:%u", ret->host, ret->port);
	}
}

void show_connection(const struct rules *r, const struct want *w, const struct verdict *v,
		     struct question *ret)
{
	char text[HOST_TEXT + 16];
	auto_buf rule = { 0 };

	memset(ret, 0, sizeof(*ret));
	ret->kind = QUESTION_CONNECT;
	ret->port = w->port;
	host_text(&w->host, ret->host);
	snprintf(text, sizeof(text), strchr(ret->host, ':') ? "[%s]:%u" : "%s:%u", ret->host,
		 ret->port);
	show_text(ret->subject, sizeof(ret->subject), text);
	rules_text(r, v->rule, &rule);
	show_text(ret->rule, sizeof(ret->rule), buf_text(&rule));
	add_details(r, w, v, ret);
	show_line(r, v, ret);
}
