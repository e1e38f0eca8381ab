/*
 * Writing MCP's messages (say.h). In: ids and values that were read, or that ward made. Out: one
 * line of JSON-RPC without its end. Pure.
 */
#include "mcp/say.h"

#include <string.h>

#include "base/json.h"

static void put_head(struct buf *out, const char *id)
{
	buf_puts(out, "{\"jsonrpc\":\"2.0\"");
	if (id)
		buf_printf(out, ",\"id\":%s", *id ? id : "null");
}

void mcp_put_result(struct buf *out, const char *id, const struct buf *result)
{
	put_head(out, id);
	buf_puts(out, ",\"result\":");
	buf_add(out, buf_text(result), result->len);
	buf_puts(out, "}");
	out->failed |= result->failed;
}

void mcp_put_error(struct buf *out, const char *id, int code, const char *message, const char *data)
{
	put_head(out, id);
	buf_printf(out, ",\"error\":{\"code\":%d,\"message\":", code);
	json_quote(out, message);
	if (data)
		buf_printf(out, ",\"data\":%s", data);
	buf_puts(out, "}}");
}

static void put_call(struct buf *out, const char *id, const char *method, const char *params)
{
	put_head(out, id);
	buf_puts(out, ",\"method\":");
	json_quote(out, method);
	if (params) {
		buf_puts(out, ",\"params\":");
		buf_puts(out, params);
	}
	buf_puts(out, "}");
}

void mcp_put_notification(struct buf *out, const char *method, const char *params)
{
	put_call(out, NULL, method, params);
}

void mcp_put_request(struct buf *out, const char *id, const char *method, const char *params)
{
	put_call(out, id, method, params);
}

void mcp_put_value(struct buf *out, struct mcp_span value)
{
	for (size_t i = 0; i < value.n; i++) {
		size_t from = i;

		while (i < value.n && value.at[i] != '\n' && value.at[i] != '\r')
			i++;
		buf_add(out, value.at + from, i - from);
		if (i < value.n)
			buf_add(out, " ", 1);
	}
}
