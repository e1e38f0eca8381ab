/*
 * Showing a request that waits. In: what front says of it, the rules. Out: texts of a struct
 * question. Method, path, query and body were chosen by the sandbox: they are escaped and cut as
 * all else (show.c). What an answer for more than once covers is said in the details, for it is
 * more than what is shown: whatever the headers are, and the body where the rule does not read it.
 * Pure. Fuzzed (fuzz/approve.c).
 */
#include <string.h>

#include "approve/show.h"
#include "protocol/gateway.h"
#include "rules/remedy.h"

static void put_subject(const struct want *w, const struct verdict *v, const char *what,
			struct question *ret)
{
	bool tls = v->mode != RULE_PLAIN, six = strchr(ret->host, ':') != NULL;
	size_t n = strcspn(what, " ");
	auto_buf text = { 0 };

	buf_add(&text, what, n);
	buf_printf(&text, six ? " %s://[%s]" : " %s://%s", tls ? "https" : "http", ret->host);
	if (w->port != (tls ? 443 : 80))
		buf_printf(&text, ":%u", w->port);
	buf_puts(&text, what + n + (what[n] ? 1 : 0));
	show_text(ret->subject, sizeof(ret->subject), text.failed ? "?" : buf_text(&text));
}

static void add(struct question *ret, size_t *n, const char *before, const char *text)
{
	char line[GATE_CUT + 64];

	if (!*text || *n == QUESTION_DETAILS_MAX)
		return;
	snprintf(line, sizeof(line), "%s%s", before, text);
	show_text(ret->details[*n], sizeof(ret->details[0]), line);
	++*n;
}

void show_request(const struct rules *r, const struct want *w, const struct verdict *v,
		  const struct gate_request *said, struct question *ret)
{
	static const uint8_t none[sizeof(said->like)];
	bool once = memcmp(said->like, none, sizeof(none)) == 0;
	auto_buf rule = { 0 }, line = { 0 };
	size_t n;

	memset(ret, 0, sizeof(*ret));
	ret->kind = QUESTION_REQUEST;
	ret->port = w->port;
	ret->serial_first = said->serial;
	memcpy(ret->exact, said->exact, sizeof(ret->exact));
	memcpy(ret->like, said->like, sizeof(ret->like));
	host_text(&w->host, ret->host);
	put_subject(w, v, said->what, ret);
	rules_text(r, v->rule, &rule);
	show_text(ret->rule, sizeof(ret->rule), buf_text(&rule));
	n = show_host_warnings(r, w, ret);
	add(ret, &n, "query: ", said->query);
	add(ret, &n, "body: ", said->body);
	add(ret, &n, "",
	    once ? "it can be allowed once only"
		 : "a yes for the run is for this URL and what is asked for, with any headers");
	if (!once && remedy_request(r, w, v->rule, said->what, said->more, &line) && !line.failed &&
	    line.len < sizeof(ret->line))
		memcpy(ret->line, buf_text(&line), line.len + 1);
}
