/*
 * Reading what programs inside ask over http://ward.internal/. In: a request (rules/http_serve.h),
 * its body. Out: what ward-ask would have asked: the words of a proposal are read by the same
 * function (proposal.c). A request of a page in a browser inside, and one for another host, are
 * refused: the page comes from elsewhere, and a person would take its reason for the agent's. Pure.
 * Fuzzed (fuzz/proposal_http.c).
 */
#include "approve/proposal_http.h"

#include <string.h>

#include "rules/json_in.h"

const char proposal_http_usage[] =
	"GET  /rules    what this sandbox may do, as JSON\n"
	"GET  /denials  what was refused so far, as JSON\n"
	"POST /allow    propose a host, or a file or directory to read, to the person who watches\n"
	"               this sandbox, and wait for the answer:\n"
	"               {\"what\": \"HOST[:PORT]\" or \"/PATH\", \"reason\": \"TEXT\"}\n"
	"POST /publish  the same for a port of a server inside: \"what\" is the port\n"
	"               the answer: {\"allowed\": true or false, \"message\": \"TEXT\"}\n"
	"\n"
	"status: 200 allowed, 403 not allowed, 400 not a proposal, 503 ward cannot be asked\n";

static bool text_is(struct http_text t, const char *word)
{
	return t.n == strlen(word) && memcmp(t.s, word, t.n) == 0;
}

/* {"what": ..., "reason": ...}: texts, nothing else. */
static bool read_body(const uint8_t *body, size_t n, struct buf *what, struct buf *reason)
{
	struct json_level l;
	struct json_in j;
	const char *key;
	bool good;

	json_in_init(&j, body, n);
	good = json_in_open(&j, '{', &l);
	while (good && json_in_next(&j, &l, &key)) {
		struct buf *to = strcmp(key, "what") == 0     ? what
				 : strcmp(key, "reason") == 0 ? reason
							      : NULL;

		good = to && json_in_peek(&j) == '"';
		if (good)
			json_in_string(&j, to);
	}
	good = good && !j.bad && json_in_end(&j) && !what->failed && !reason->failed;
	json_in_free(&j);
	return good;
}

/* The packet that ward-ask would send. */
static bool make_packet(const char *verb, const struct buf *what, const struct buf *reason,
			struct buf *out)
{
	const struct ask_message m = { ASK_MAGIC, ASK_WORDS, 4, 0 };
	const char *const words[] = { verb, buf_text(what), "--reason", buf_text(reason) };

	buf_add(out, &m, sizeof(m));
	for (size_t i = 0; i < ARRAY_LEN(words); i++)
		buf_add(out, words[i], strlen(words[i]) + 1);
	return !out->failed;
}

static unsigned read_proposal(const char *verb, const uint8_t *body, size_t n, struct proposal *ret,
			      const char **ret_why)
{
	auto_buf what = { 0 }, reason = { 0 }, packet = { 0 };

	*ret_why = "expected {\"what\": \"TEXT\", \"reason\": \"TEXT\"}";
	if (!read_body(body, n, &what, &reason) || !make_packet(verb, &what, &reason, &packet))
		return 400;
	if (proposal_read((const uint8_t *)packet.data, packet.len, ret, ret_why))
		return 0;
	*ret_why = *ret_why ? *ret_why : "the proposal is too long";
	return 400;
}

unsigned proposal_http_read(const struct http_request *req, const struct host *host, uint16_t port,
			    const uint8_t *body, size_t n, struct proposal *ret,
			    const char **ret_why)
{
	static const struct {
		const char *path;
		enum proposal_verb verb;
	} pages[] = { { "/", PROPOSAL_HELP },
		      { "/rules", PROPOSAL_RULES },
		      { "/denials", PROPOSAL_DENIALS } };
	bool get = text_is(req->method, "GET"), post = text_is(req->method, "POST");
	struct host own;

	*ret = (struct proposal){ .json = true };
	*ret_why = "this is " PROPOSAL_HTTP_NAME;
	if (host_read(PROPOSAL_HTTP_NAME, strlen(PROPOSAL_HTTP_NAME), &own) != HOST_FINE ||
	    !host_equal(host, &own) || (port && port != 80))
		return 421;
	*ret_why = "a page of a browser cannot ask here";
	if (http_field_get(&req->fields, "origin").s)
		return 403;
	if (post && (text_is(req->path, "/allow") || text_is(req->path, "/publish")))
		return read_proposal(text_is(req->path, "/allow") ? "allow" : "publish", body, n,
				     ret, ret_why);
	for (size_t i = 0; i < ARRAY_LEN(pages) && get; i++)
		if (text_is(req->path, pages[i].path)) {
			ret->verb = pages[i].verb;
			return 0;
		}
	*ret_why = "GET /, /rules or /denials, or POST /allow or /publish";
	return get || post ? 404 : 405;
}
