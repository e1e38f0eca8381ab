/* Fuzzes a session with a hostile server: its bytes arrive in two pieces, between calls and
 * cancellations of ours. What is sent to it is messages, one a line; a result that is handed out is
 * JSON that can be read in one way, on one line, in which nothing acts on a terminal; and no answer
 * is taken for another call's. */
#include <assert.h>
#include <errno.h>
#include <string.h>

#include "base/text.h"
#include "mcp/remote.h"
#include "mcp/result.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

struct state {
	size_t tools;
	bool open[REMOTE_CALLS_MAX];
};

static void take_info(void *state, struct mcp_span result)
{
	(void)state;
	assert(mcp_type(result) == '{');
}

static void begin_list(void *state)
{
	((struct state *)state)->tools = 0;
}

static void take_tool(void *state, struct mcp_span tool)
{
	assert(mcp_type(tool) == '{' && ++((struct state *)state)->tools <= REMOTE_TOOLS_MAX);
}

static void end_list(void *state)
{
	(void)state;
}

static void check_text(const struct buf *text)
{
	const unsigned char *s = (const unsigned char *)buf_text(text);
	unsigned point = 0;

	for (size_t len; *s; s += len) {
		len = text_utf8(s, &point);
		assert(len && !text_acts(point));
	}
}

static void take_answer(void *state, size_t call, bool failed, struct mcp_span body)
{
	struct state *s = state;
	struct mcp_result result;
	struct mcp_parts parts;
	auto_buf whole = { 0 };
	const char *why = NULL;

	assert(s->open[call]);
	s->open[call] = false;
	if (!failed && mcp_result_read(body, &result, &why)) {
		buf_printf(&whole, "{%s}", buf_text(&result.members));
		assert(mcp_split((const uint8_t *)whole.data, whole.len, &parts, &why) == 0);
		check_text(&whole);
	} else if (!failed) {
		assert(why);
	}
	if (!failed)
		mcp_result_free(&result);
}

static void take_refused(void *state, const char *method)
{
	(void)state;
	assert(*method);
}

/* All that it was sent so far. */
static void check_out(struct mcp_remote *u)
{
	struct mcp_lines lines = { 0 };
	struct mcp_message m;
	struct mcp_parts parts;
	struct mcp_span line;
	const char *why;

	mcp_lines_add(&lines, buf_text(&u->out), u->out.len);
	while (mcp_lines_next(&lines, &line) == 1) {
		assert(mcp_split(line.at, line.n, &parts, &why) == 0);
		assert(mcp_read(parts.items[0], &m, &why) == 0);
	}
	mcp_lines_free(&lines);
	buf_free(&u->out);
}

static void call(struct mcp_remote *u, struct state *s)
{
	static const char arguments[] = "{\"a\":\n1}";
	size_t call;

	if (remote_call(u, "tool", (struct mcp_span){ (const uint8_t *)arguments, 8 }, &call) < 0)
		return;
	assert(!s->open[call]);
	s->open[call] = true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	/* ids 1 and 2 are initialize and tools/list: what follows is answers to calls, too */
	static const char hello[] =
		"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"protocolVersion\":\"2025-06-18\","
		"\"capabilities\":{\"tools\":{}}}}\n"
		"{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{\"tools\":[]}}\n";
	struct state s = { 0 };
	const struct remote_sink sink = { &s,       take_info,   begin_list,  take_tool,
					  end_list, take_answer, take_refused };
	struct mcp_remote u;
	size_t half = n / 2;

	remote_begin(&u);
	if (n && data[0] & 1)
		remote_add(&u, &sink, hello, sizeof(hello) - 1);
	for (int i = 0; i < 3; i++)
		call(&u, &s);
	remote_add(&u, &sink, data, half);
	check_out(&u);
	if (s.open[0]) {
		remote_drop(&u, 0);
		s.open[0] = false;
	}
	call(&u, &s);
	remote_add(&u, &sink, data + half, n - half);
	check_out(&u);
	assert(remote_open(&u, false) + remote_open(&u, true) <= REMOTE_CALLS_MAX);
	assert(u.state != REMOTE_BROKEN || u.why);
	remote_free(&u);
	return 0;
}
