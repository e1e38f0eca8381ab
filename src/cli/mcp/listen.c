/*
 * Changes of the tools.yaml while it is served. In: the kernel's events about its directory. Out: a
 * new list, and a notification for clients that want one. An agent may have written the file since
 * it was named on the command line: changed content counts when ward tool trust has accepted it,
 * also where -f names the file. Until then, and if it cannot be read, the tools stay as they were.
 * Calls that run go on with what they began with.
 */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "base/io.h"
#include "cli/mcp/parts.h"
#include "mcp/say.h"

#define LISTENERS_MAX 64
#define AGAIN_MS 1000 /* between looks whether a content was accepted */
#define SUBSCRIPTION "\"io.modelcontextprotocol/subscriptionId\""

/* -- notifications */

void listen_tell(struct server *s)
{
	for (struct peer *p = s->peers; p; p = p->next) {
		auto_buf line = { 0 };

		mcp_put_notification(&line, "notifications/tools/list_changed", NULL);
		if (p->revision)
			p->send(p, 0, SENT_MESSAGE, 0, &line);
	}
	for (const struct listener *l = s->listeners; l; l = l->next) {
		auto_buf params = { 0 }, line = { 0 };

		buf_printf(&params, "{\"_meta\":{" SUBSCRIPTION ":%s}}", l->id);
		mcp_put_notification(&line, "notifications/tools/list_changed", buf_text(&params));
		line.failed |= params.failed;
		l->peer->send(l->peer, l->stream, SENT_MESSAGE, 0, &line);
	}
}

void listen_take(const struct request *r)
{
	struct mcp_span wanted, tools;
	struct server *s = r->peer->server;
	struct listener *l;
	auto_buf params = { 0 }, line = { 0 };
	size_t count = 0;
	bool honoured;

	if (!mcp_get(r->message->params, "notifications", &wanted) || mcp_type(wanted) != '{') {
		reply_error(r, MCP_BAD_PARAMS, "notifications is missing", NULL);
		return;
	}
	for (l = s->listeners; l; l = l->next)
		count++;
	l = count < LISTENERS_MAX ? calloc(1, sizeof(*l)) : NULL;
	if (!l) {
		reply_error(r, MCP_INTERNAL, "too many subscriptions", NULL);
		return;
	}
	honoured = mcp_get(wanted, "toolsListChanged", &tools) && mcp_type(tools) == 't';
	l->peer = r->peer;
	l->stream = r->stream;
	memcpy(l->id, r->message->id, sizeof(l->id));
	buf_printf(&params, "{\"_meta\":{" SUBSCRIPTION ":%s},\"notifications\":{%s}}", l->id,
		   honoured ? "\"toolsListChanged\":true" : "");
	mcp_put_notification(&line, "notifications/subscriptions/acknowledged", buf_text(&params));
	line.failed |= params.failed;
	r->peer->send(r->peer, r->stream, SENT_MESSAGE, 0, &line);
	l->next = s->listeners;
	s->listeners = l;
}

void listen_cancel(struct peer *p, const char *id)
{
	struct listener **at = &p->server->listeners;

	while (*at) {
		struct listener *l = *at;

		if (l->peer != p || (id && strcmp(l->id, id) != 0)) {
			at = &l->next;
			continue;
		}
		*at = l->next;
		p->send(p, l->stream, SENT_NOTHING, 0, NULL);
		free(l);
	}
}

bool listen_has(const struct peer *p)
{
	const struct listener *l = p->server->listeners;

	while (l && l->peer != p)
		l = l->next;
	return l;
}

/* -- the file */

void listen_begin(struct server *s)
{
	const struct tools_source *source = &s->catalog->source;

	s->watch_fd = source->dir ? inotify_init1(IN_CLOEXEC | IN_NONBLOCK) : -1;
	if (s->watch_fd >= 0 && inotify_add_watch(s->watch_fd, source->dir,
						  IN_CLOSE_WRITE | IN_MOVED_TO | IN_ONLYDIR) < 0) {
		close(s->watch_fd);
		s->watch_fd = -1;
	}
}

void listen_end(struct server *s)
{
	io_close_later(s->watch_fd);
	s->watch_fd = -1;
	while (s->listeners) {
		struct listener *l = s->listeners;

		s->listeners = l->next;
		free(l);
	}
}

static void look(struct server *s)
{
	struct catalog *c = NULL;
	struct ward_err e = { 0 };
	int r = list_reload(s, &c, &e);
	bool was = s->unaccepted;

	s->unaccepted = r == -EACCES;
	s->look_ms = io_now_ms() + AGAIN_MS;
	if (r < 0) {
		if (r != -EACCES || !was)
			fprintf(stderr, "ward mcp serve: the tools stay as they were: %s%s%s\n",
				e.why, *e.remedy ? "; " : "", e.remedy);
		return;
	}
	if (strcmp(c->source.hex, s->catalog->source.hex) == 0) {
		catalog_drop(c);
		return;
	}
	catalog_drop(s->catalog);
	s->catalog = c;
	listen_tell(s);
}

/* Whether one of the events is about the file. */
static bool is_about(const struct server *s, const char *bytes, size_t n)
{
	const char *name = strrchr(s->catalog->source.path, '/') + 1;
	struct inotify_event one;
	bool ours = false;

	for (size_t at = 0; at + sizeof(one) <= n; at += sizeof(one) + one.len) {
		memcpy(&one, bytes + at, sizeof(one));
		ours |= one.mask & IN_Q_OVERFLOW ||
			(one.len && strcmp(bytes + at + sizeof(one), name) == 0);
	}
	return ours;
}

void listen_ready(struct server *s)
{
	char bytes[8 * (sizeof(struct inotify_event) + NAME_MAX + 1)];
	ssize_t n = read(s->watch_fd, bytes, sizeof(bytes));

	if (n > 0 && is_about(s, bytes, (size_t)n))
		look(s);
}

int listen_on_time(struct server *s, uint64_t now)
{
	if (!s->unaccepted)
		return -1;
	if (now >= s->look_ms)
		look(s);
	if (!s->unaccepted)
		return -1;
	return s->look_ms > now ? (int)(s->look_ms - now) : 0;
}
