/*
 * Speaking MCP to a server. In: a command that runs in a sandbox, lines of JSON-RPC from it,
 * untrusted. Out: results as trees. Each message is one line of at most a mebibyte; what is no
 * JSON-RPC answer to our request is skipped if it is a notification, answered with an error if it
 * is a request of the server's (but ping), and an error otherwise. The deadline is the sandbox's:
 * when it is over the stream ends. Runs with the user's rights.
 */
#include "tools/mcp_client.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/io.h"
#include "base/json.h"
#include "base/text.h"

#define REVISION "2025-11-25"
#define PAGES_MAX 100
#define SKIPPED_MAX 10000 /* messages that are not the answer */
#define ERROR_BYTES_MAX 65536
#define END_WAIT_MS 2000

static int send_line(struct mcp_client *c, const char *text, struct ward_err *e)
{
	auto_buf line = { 0 };
	int r;

	buf_puts(&line, text);
	buf_puts(&line, "\n");
	if (line.failed)
		return ward_fail(e, ENOMEM, "out of memory");
	for (size_t at = 0; at < line.len;) {
		ssize_t n = send(c->in_fd, line.data + at, line.len - at, MSG_NOSIGNAL);

		if (n < 0 && errno == EINTR)
			continue;
		r = -errno;
		if (n < 0)
			return ward_fail(e, -r, "the MCP server has ended: %s", strerror(-r));
		at += (size_t)n;
	}
	return 0;
}

/* One line, without its end. */
static int read_line(struct mcp_client *c, struct buf *ret, struct ward_err *e)
{
	for (;;) {
		char *end = c->rest.len ? memchr(c->rest.data, '\n', c->rest.len) : NULL;
		ssize_t n;

		if (end) {
			size_t len = (size_t)(end - c->rest.data);

			ret->len = 0;
			buf_add(ret, c->rest.data, len);
			memmove(c->rest.data, end + 1, c->rest.len - len - 1);
			c->rest.len -= len + 1;
			return ret->failed ? ward_fail(e, ENOMEM, "out of memory") : 0;
		}
		if (c->rest.len > MCP_MESSAGE_MAX)
			return ward_fail(e, EMSGSIZE,
					 "the MCP server sent a message of more than "
					 "1 MiB");
		if (!buf_reserve(&c->rest, 65536))
			return ward_fail(e, ENOMEM, "out of memory");
		n = read(c->out_fd, c->rest.data + c->rest.len, 65536);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return ward_fail(e, EPIPE, "the MCP server ended without an answer");
		c->rest.len += (size_t)n;
	}
}

static const struct node *member(const struct node *n, const char *key)
{
	return n && n->kind == NODE_MAP ? node_get(n, key) : NULL;
}

/* A request of the server's: we offer nothing, but answer a ping. */
static int answer(struct mcp_client *c, const struct node *message, struct ward_err *e)
{
	const struct node *id = member(message, "id"), *method = member(message, "method");
	auto_buf text = { 0 };

	if (!id || !id->text || !method || !method->text)
		return 0;
	buf_puts(&text, "{\"jsonrpc\":\"2.0\",\"id\":");
	if (id->kind == NODE_STRING)
		json_quote(&text, id->text);
	else
		buf_puts(&text, id->text);
	buf_puts(&text, strcmp(method->text, "ping") == 0
				? ",\"result\":{}}"
				: ",\"error\":{\"code\":-32601,\"message\":\"not offered\"}}");
	return send_line(c, buf_text(&text), e);
}

static int take_answer(const struct node *root, const struct node **ret_result, struct ward_err *e)
{
	const struct node *error = member(root, "error"), *message = member(error, "message");
	auto_buf shown = { 0 };

	*ret_result = member(root, "result");
	if (*ret_result)
		return 0;
	text_escape(&shown, message && message->text ? message->text : "no result");
	return ward_fail(e, EREMOTEIO, "the MCP server answered: %.400s", buf_text(&shown));
}

int mcp_request(struct mcp_client *c, const char *method, const char *params,
		struct node **ret_root, const struct node **ret_result, struct ward_err *e)
{
	unsigned id = c->next_id++;
	auto_buf text = { 0 }, line = { 0 };
	char number[16];
	int r;

	snprintf(number, sizeof(number), "%u", id);
	buf_printf(&text, "{\"jsonrpc\":\"2.0\",\"id\":%u,\"method\":\"%s\",\"params\":%s}", id,
		   method, params);
	r = send_line(c, buf_text(&text), e);
	for (unsigned skipped = 0; r == 0 && skipped < SKIPPED_MAX; skipped++) {
		struct ward_err why = { 0 };
		struct reader reader = { .name = "", .e = &why };
		const struct node *said;
		struct node *root;

		r = read_line(c, &line, e);
		if (r < 0)
			return r;
		root = json_read(&reader, (const uint8_t *)buf_text(&line), line.len);
		if (!root || reader.count) {
			node_free(root);
			return ward_fail(e, EPROTO, "the MCP server wrote no JSON: %.200s",
					 why.why);
		}
		said = member(root, "id");
		if (!member(root, "method") && said && said->text &&
		    strcmp(said->text, number) == 0) {
			*ret_root = root;
			return take_answer(root, ret_result, e);
		}
		r = answer(c, root, e);
		node_free(root);
	}
	return r < 0 ? r : ward_fail(e, EPROTO, "the MCP server does not answer %s", method);
}

static int initialize(struct mcp_client *c, struct ward_err *e)
{
	static const char params[] =
		"{\"protocolVersion\":\"" REVISION "\",\"capabilities\":{},"
		"\"clientInfo\":{\"name\":\"ward\",\"version\":\"" WARD_VERSION "\"}}";
	const struct node *result;
	auto_node root = NULL;
	int r = mcp_request(c, "initialize", params, &root, &result, e);

	return r < 0 ? r
		     : send_line(c,
				 "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}",
				 e);
}

int mcp_open(const struct call_place *at, const struct policy *p, char *const *command,
	     struct mcp_client *ret, struct ward_err *e)
{
	int in[2] = { -1, -1 }, out[2] = { -1, -1 }, r;
	auto_strv words = { 0 };

	*ret = (struct mcp_client){
		.pid = -1, .in_fd = -1, .out_fd = -1, .error_fd = -1, .next_id = 1
	};
	r = call_words(at, p, command, &words, e);
	if (r < 0)
		return r;
	ret->error_fd = memfd_create("mcp-error", MFD_CLOEXEC);
	if (ret->error_fd < 0 || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, in) < 0 ||
	    pipe2(out, O_CLOEXEC) < 0) {
		ward_fail_errno(e, "cannot make the streams of the MCP server");
		own_close_fd(&in[0]);
		own_close_fd(&in[1]);
		return -e->code;
	}
	r = call_start(&words, (int[]){ in[1], out[1], ret->error_fd }, &ret->pid, e);
	close(in[1]);
	close(out[1]);
	ret->in_fd = in[0];
	ret->out_fd = out[0];
	return r == 0 ? initialize(ret, e) : r;
}

void mcp_close(struct mcp_client *c, struct buf *ret_error)
{
	int status;

	own_close_fd(&c->in_fd); /* a server ends when its input does */
	for (int waited = 0; c->pid > 0; waited += 20) {
		pid_t ended = waitpid(c->pid, &status, WNOHANG);

		if (ended == c->pid || (ended < 0 && errno != EINTR))
			break;
		if (waited == END_WAIT_MS)
			kill(c->pid, SIGTERM);
		poll(NULL, 0, 20);
	}
	own_close_fd(&c->out_fd);
	if (ret_error && c->error_fd >= 0 && lseek(c->error_fd, 0, SEEK_SET) == 0)
		(void)!io_read_all(c->error_fd, ERROR_BYTES_MAX, ret_error);
	own_close_fd(&c->error_fd);
	buf_free(&c->rest);
	c->pid = -1;
}

/* Moves the children of from behind those of to. */
static void move_tools(struct node *from, struct node *to)
{
	if (!from->first)
		return;
	if (to->last)
		to->last->next = from->first;
	else
		to->first = from->first;
	to->last = from->last;
	to->count += from->count;
	from->first = from->last = NULL;
	from->count = 0;
}

static struct node *member_of(struct node *n, const char *key)
{
	for (struct node *c = n && n->kind == NODE_MAP ? n->first : NULL; c; c = c->next)
		if (strcmp(c->key, key) == 0)
			return c;
	return NULL;
}

int mcp_list(struct mcp_client *c, struct node **ret_tools, struct ward_err *e)
{
	struct reader none = { .name = "", .e = e };
	struct node *all = node_new(&none, NODE_LIST, (struct place){ 1, 1 }, NULL, 0);
	auto_buf params = { 0 };
	int r = all ? 0 : -ENOMEM;

	buf_puts(&params, "{}");
	for (unsigned page = 0; r == 0; page++) {
		const struct node *result, *cursor;
		auto_node root = NULL;
		struct node *list;

		r = mcp_request(c, "tools/list", buf_text(&params), &root, &result, e);
		if (r < 0)
			break;
		list = member_of(member_of(root, "result"), "tools");
		cursor = member(result, "nextCursor");
		if (!list || list->kind != NODE_LIST || page == PAGES_MAX) {
			r = ward_fail(e, EPROTO, "the MCP server lists no tools, or without end");
			break;
		}
		move_tools(list, all);
		if (!cursor || cursor->kind != NODE_STRING)
			break;
		params.len = 0;
		buf_puts(&params, "{\"cursor\":");
		json_quote(&params, cursor->text);
		buf_puts(&params, "}");
	}
	if (r < 0) {
		node_free(all);
		return r;
	}
	*ret_tools = all;
	return 0;
}
