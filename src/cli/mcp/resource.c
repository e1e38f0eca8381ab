/*
 * Logs and changes as resources. In: a URI, untrusted. Out: the journal of a call that this server
 * made, or what the session changed. A URI is compared with those that are listed and nothing else:
 * the runs of others cannot be named. The text is read by ward itself, in a worker.
 */
#include "cli/mcp/parts.h"

#include <string.h>

#include "base/text.h"

#define TEXT_MAX (1u << 20)
#define CHANGES "ward://session/changes"
#define RUN "ward://run/"
#define JOURNAL "/journal"

static void put_one(struct json *j, const char *uri, const char *name, const char *type,
		    const char *about)
{
	json_begin_object(j, NULL);
	json_string(j, "uri", uri);
	json_string(j, "name", name);
	json_string(j, "description", about);
	json_string(j, "mimeType", type);
	json_end_object(j);
}

static void reply_list(const struct request *r, struct buf *out)
{
	if (r->modern)
		buf_puts(out, ",\"ttlMs\":0,\"cacheScope\":\"private\"");
	reply(r, out);
}

void resource_list(const struct request *r)
{
	const struct server *s = r->peer->server;
	size_t first = s->run_count > RUNS_MAX ? s->run_count - RUNS_MAX : 0;
	auto_buf out = { 0 };
	struct json j = { .out = &out };

	json_begin_array(&j, "resources");
	if (*s->session.id)
		put_one(&j, CHANGES, "changes", "text/x-diff",
			"what the session changed in the workspace, waiting for a review");
	for (size_t i = s->run_count; i > first; i--) {
		const char *run = s->runs[(i - 1) % RUNS_MAX];
		char uri[64];

		snprintf(uri, sizeof(uri), RUN "%s" JOURNAL, run);
		put_one(&j, uri, run, "application/x-ndjson",
			"the journal of a call: what its sandbox was given, did and was denied");
	}
	json_end_array(&j);
	reply_list(r, &out);
}

void resource_templates(const struct request *r)
{
	auto_buf out = { 0 };

	buf_puts(&out, "\"resourceTemplates\":[]");
	reply_list(r, &out);
}

/* -- reading, in a worker */

static void read_one(const struct server *s, struct mcp_span params, struct buf *out)
{
	struct json j = { .out = out };
	auto_buf uri = { 0 }, text = { 0 };
	auto_result result = { 0 };
	struct ward_err e = { 0 };
	struct mcp_span value;
	char run[24];
	bool changes = mcp_get(params, "uri", &value) && mcp_is(value, CHANGES);
	int r;

	(void)!mcp_text(value, &uri);
	snprintf(run, sizeof(run), "%.*s",
		 changes ? 0 : (int)strcspn(buf_text(&uri) + strlen(RUN), "/"),
		 changes ? "" : buf_text(&uri) + strlen(RUN));
	r = changes ? session_changes(&s->session, TEXT_MAX, &result, &e)
		    : session_journal(run, TEXT_MAX, &result, &e);
	text_escape_lines(&text, buf_text(&result.out), result.out.len);
	if (r < 0 || (result.exit_code && !result.out.len))
		buf_printf(&text, "ward: it cannot be read: %s\n",
			   r < 0 ? e.why : buf_text(&result.error));
	if (result.output_limit)
		buf_printf(&text, "\nward: the first %u bytes of it\n", TEXT_MAX);
	json_begin_array(&j, "contents");
	json_begin_object(&j, NULL);
	json_string(&j, "uri", buf_text(&uri));
	json_string(&j, "mimeType", changes ? "text/x-diff" : "application/x-ndjson");
	json_string(&j, "text", buf_text(&text));
	json_end_object(&j);
	json_end_array(&j);
	out->failed |= text.failed || uri.failed;
}

/* Whether it is one of those that are listed. */
static bool is_listed(const struct server *s, const char *uri)
{
	size_t count = s->run_count < RUNS_MAX ? s->run_count : RUNS_MAX;

	if (strcmp(uri, CHANGES) == 0)
		return *s->session.id;
	for (size_t i = 0; i < count; i++) {
		char known[64];

		snprintf(known, sizeof(known), RUN "%s" JOURNAL, s->runs[i]);
		if (strcmp(known, uri) == 0)
			return true;
	}
	return false;
}

void resource_read(const struct request *r)
{
	static const struct builtin reader = { .call = read_one };
	static const struct offer offer = { .builtin = &reader };
	auto_buf uri = { 0 };
	struct mcp_span value;

	if (!mcp_get(r->message->params, "uri", &value) || !mcp_text(value, &uri))
		reply_error(r, MCP_BAD_PARAMS, "uri is missing", NULL);
	else if (!is_listed(r->peer->server, buf_text(&uri)))
		reply_error(r, r->modern ? MCP_BAD_PARAMS : MCP_NO_RESOURCE,
			    "there is no resource of that URI", NULL);
	else
		work_begin(r, &offer, r->message->params);
}
