/*
 * ward mcp wrap: an MCP server that is not trusted, offered to a client. In: the options, what was
 * accepted of the server, a tools.yaml or none. Out: the server of serve.c, whose tools are the
 * definitions that a person has accepted, word for word, with annotations of ours: those of the
 * tools.yaml's entry, or what the sandbox's policy lets any tool do. The server itself runs in one
 * sandbox for each distinct scope, started when a tool of that scope is called first; the first one
 * is started at once, so that definitions that have changed are known early. Those are not offered
 * any more. Runs with the user's rights, and reads no byte of the server: relay.c does.
 */
#include "cli/mcp/wrap.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/io.h"
#include "base/text.h"
#include "cli/ask.h"
#include "policy/units.h"
#include "tools/mcp_pin.h"
#include "tools/scope.h"

/* -- how a tool is shown */

/* JSON with what hides in its texts made visible. */
static void put_visible(const struct node *n, struct buf *out)
{
	auto_buf visible = { 0 };

	if (n->kind != NODE_MAP && n->kind != NODE_LIST && n->kind != NODE_STRING) {
		tools_json(n, out);
		return;
	}
	if (n->kind == NODE_STRING) {
		text_escape_lines(&visible, n->text, strlen(n->text));
		json_quote(out, buf_text(&visible));
		return;
	}
	buf_puts(out, n->kind == NODE_MAP ? "{" : "[");
	for (const struct node *c = n->first; c; c = c->next) {
		buf_puts(out, c == n->first ? "" : ",");
		if (n->kind == NODE_MAP) {
			auto_buf key = { 0 };

			text_escape(&key, c->key);
			json_quote(out, buf_text(&key));
			buf_puts(out, ":");
		}
		put_visible(c, out);
	}
	buf_puts(out, n->kind == NODE_MAP ? "}" : "]");
}

static void put_member(const struct node *tool, const char *key, struct buf *out)
{
	const struct node *n = node_get(tool, key);

	if (!n || n->kind != NODE_STRING)
		return;
	buf_printf(out, ",\"%s\":", key);
	put_visible(n, out);
}

static void put_annotations(const struct walls *w, struct json *j)
{
	bool reads = !w->writes && !w->world;

	json_begin_object(j, "annotations");
	json_bool(j, "readOnlyHint", reads);
	json_bool(j, "destructiveHint", !reads);
	json_bool(j, "idempotentHint", reads);
	json_bool(j, "openWorldHint", w->world);
	json_end_object(j);
}

static char *show(const struct wrap *w, const struct wrapped *t)
{
	const struct tool_tool *entry = t->entry;
	auto_buf out = { 0 };
	struct json j = { .out = &out };

	json_begin_object(&j, NULL);
	json_string(&j, "name", entry ? entry->head.name : t->pin->name);
	if (entry) {
		json_string(&j, "description", entry->description);
	} else {
		put_member(t->pin->node, "title", &out);
		put_member(t->pin->node, "description", &out);
	}
	buf_puts(&out, ",\"inputSchema\":");
	if (entry && (entry->parameters.len || entry->input))
		bind_input_schema(entry, &out);
	else
		put_visible(t->pin->input, &out);
	if (t->pin->output) {
		buf_puts(&out, ",\"outputSchema\":");
		put_visible(t->pin->output, &out);
	}
	if (entry)
		list_put_annotations(entry, &j);
	else
		put_annotations(&w->source.walls, &j);
	json_end_object(&j);
	return buf_take(&out);
}

/* -- which sandbox */

static int add_instance(struct wrap *w, const char *document, const char *cwd, size_t *ret,
			struct ward_err *e)
{
	struct instance *i;

	for (size_t k = 0; k < w->instance_count; k++)
		if (strcmp(w->instances[k].document, document) == 0) {
			*ret = k;
			return 0;
		}
	if (w->instance_count == INSTANCES_MAX)
		return ward_fail(e, E2BIG,
				 "the tools of one server have at most %d distinct scopes",
				 INSTANCES_MAX);
	i = &w->instances[w->instance_count];
	*i = (struct instance){ .document = strdup(document),
				.cwd = strdup(cwd),
				.control_fd = -1 };
	*ret = w->instance_count++;
	return i->document && i->cwd ? 0 : ward_fail(e, ENOMEM, "out of memory");
}

/* The scope's policy, but for its time, which is a call's. */
static int place_entry(struct wrap *w, const struct catalog *c, struct wrapped *t,
		       struct policy_errors *errors, struct ward_err *e)
{
	struct policy policy = { 0 };
	auto_buf document = { 0 };
	int r = tools_make_policy(&c->source, c->agent, t->entry, w->place.empty, &policy, errors,
				  e);

	if (r == 0) {
		policy.res_timeout = POLICY_NONE;
		scope_document(&policy, &document);
		r = document.failed ? ward_fail(e, ENOMEM, "out of memory")
				    : add_instance(w, buf_text(&document), policy.fs_workspace,
						   &t->instance, e);
	}
	policy_clear(&policy);
	return r;
}

/* -- which tools */

static int add_tool(struct wrap *w, struct catalog *c, const struct pinned_tool *pin,
		    const struct tool_tool *entry, struct wrapped **ret, struct ward_err *e)
{
	struct wrapped *t = &w->tools[c->offer_count];
	struct offer *offer = &c->offers[c->offer_count++];

	*t = (struct wrapped){ .pin = pin,
			       .entry = entry,
			       .number = (uint32_t)(pin - w->source.pins.tools),
			       .timeout_ms = entry ? entry->scope.limits.timeout : w->call_ms,
			       .result_max = entry ? entry->scope.limits.output : WRAP_RESULT_MAX };
	*offer = (struct offer){ .name = entry ? entry->head.name : pin->name,
				 .tool = entry,
				 .wrapped = t,
				 .shown = show(w, t) };
	*ret = t;
	return offer->shown ? 0 : ward_fail(e, ENOMEM, "out of memory");
}

static int add_entry(struct wrap *w, struct catalog *c, const struct tool_tool *tool,
		     struct policy_errors *errors, struct ward_err *e)
{
	const char *name = tool->mcp.tool ? tool->mcp.tool : tool->head.name;
	const struct pinned_tool *pin = pins_find(&w->source.pins, name);
	struct wrapped *t;
	int r;

	if (!tool->mcp.head.node || strcmp(tool->mcp.server, w->source.name) != 0 ||
	    (c->agent && !strv_has(&c->agent->tools, tool->head.name)))
		return 0;
	if (!pin)
		return ward_fail(e, ENOENT, "%s: the server %s has no tool %s that was accepted",
				 tool->head.name, w->source.name, name);
	if (tool->output) {
		ward_fail(e, EINVAL, "%s: output is not supported for a wrapped server",
			  tool->head.name);
		return ward_remedy(e, "leave it out: the server's own output schema is enforced");
	}
	r = add_tool(w, c, pin, tool, &t, e);
	return r < 0 ? r : place_entry(w, c, t, errors, e);
}

/* What a tools.yaml names, and nothing else. */
static int choose_entries(const struct options *o, struct wrap *w, struct catalog *c,
			  struct policy_errors *errors, struct ward_err *e)
{
	const struct tool_server *server;
	struct tools *t = &c->source.t;
	char pin[72];
	int r = tools_load(o->tools_file, &c->source, errors, e);

	if (r < 0)
		return r;
	server = tools_find_server(t, w->source.name);
	c->agent = o->tools_agent ? tools_find_agent(t, o->tools_agent) : NULL;
	if (o->tools_agent && !c->agent)
		return ward_fail(e, ENOENT, "%.200s has no agent %.80s", c->source.shown,
				 o->tools_agent);
	if (!server)
		return ward_fail(e, ENOENT, "%.200s has no server %s", c->source.shown,
				 w->source.name);
	r = pins_check_command(&w->source.pins, server->command.items, e);
	mcp_pin(node_get(node_get(w->source.pins.root, "said"), "tools"), pin);
	if (r == 0 && server->pin && strcmp(server->pin, pin) != 0)
		r = ward_fail(e, EPERM,
			      "%.200s pins other tools of %s than those that were "
			      "accepted, which are %s",
			      c->source.shown, w->source.name, pin);
	w->tools = calloc(t->file.tools.len + 1, sizeof(*w->tools));
	c->offers = calloc(t->file.tools.len + 1, sizeof(*c->offers));
	if (!w->tools || !c->offers)
		return ward_fail(e, ENOMEM, "out of memory");
	for (size_t i = 0; r == 0 && i < t->file.tools.len; i++)
		r = add_entry(w, c, tools_at(tool, &t->file.tools, i), errors, e);
	if (r == 0 && !c->offer_count)
		r = ward_fail(e, ENOENT, "%.200s has no tool of the server %s", c->source.shown,
			      w->source.name);
	return r;
}

static int choose_all(struct wrap *w, struct catalog *c, struct ward_err *e)
{
	const struct pins *p = &w->source.pins;
	struct wrapped *t;
	int r = 0;

	w->tools = calloc(p->count + 1, sizeof(*w->tools));
	c->offers = calloc(p->count + 1, sizeof(*c->offers));
	if (!w->tools || !c->offers)
		return ward_fail(e, ENOMEM, "out of memory");
	for (size_t i = 0; r == 0 && i < p->count; i++) {
		r = add_tool(w, c, &p->tools[i], NULL, &t, e);
		if (r == 0)
			r = add_instance(w, buf_text(&w->source.document), w->source.cwd,
					 &t->instance, e);
	}
	return r;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct offer *)a)->name, ((const struct offer *)b)->name);
}

static int read_timeout(const struct options *o, struct wrap *w, struct ward_err *e)
{
	w->call_ms = WRAP_CALL_MS;
	if (!o->call_timeout)
		return 0;
	if (units_parse_seconds(o->call_timeout, &w->call_ms) < 0 || !w->call_ms)
		return ward_fail(e, EINVAL, "--call-timeout %.40s: expected seconds: 30, 0.5, 5m",
				 o->call_timeout);
	return 0;
}

static int load(struct options *o, struct wrap *w, struct catalog *c, struct policy_errors *errors,
		struct ward_err *e)
{
	int r = read_timeout(o, w, e);

	if (r == 0)
		r = source_read(o, o->words, &w->source, e);
	if (r == 0 && !w->source.known) {
		ward_fail(e, ENOENT, "no tools of %s were ever accepted", w->source.name);
		r = ward_remedy(e, "look at them: ward mcp trust, with the same options");
	}
	if (r == 0)
		r = pins_check_command(&w->source.pins, w->source.command.items, e);
	if (r == 0)
		r = call_place_open(&w->place, e);
	if (r < 0)
		return r;
	c->ask_ms = w->source.ask_ms;
	r = o->tools_file ? choose_entries(o, w, c, errors, e) : choose_all(w, c, e);
	qsort(c->offers, c->offer_count, sizeof(*c->offers), by_name);
	w->kind = (struct instance_kind){ .name = w->source.name,
					  .command = w->source.command.items,
					  .pins = &w->source.pins };
	return r;
}

/* -- while it runs */

size_t wrap_polls(const struct server *s, struct pollfd *fds)
{
	size_t count = s->wrap ? s->wrap->instance_count : 0;

	for (size_t i = 0; i < count; i++) {
		const struct instance *one = &s->wrap->instances[i];

		fds[i] = (struct pollfd){ one->run && !one->end_ms ? one->control_fd : -1, POLLIN,
					  0 };
	}
	return count;
}

/* Says what has changed, and to clients that their list has. */
static void take_report(struct server *s, size_t instance, const struct relay_report *report)
{
	struct wrap *w = s->wrap;
	bool news = false;

	for (size_t i = 0; i < s->catalog->offer_count; i++) {
		struct wrapped *t = &w->tools[i];
		enum relay_drift drift = report->drift[t->number];

		if ((instance && t->instance != instance) || drift == t->drift)
			continue;
		t->drift = drift;
		news = true;
		if (drift != RELAY_SAME)
			fprintf(stderr, "ward mcp wrap: %s: the tool %s %s, and is refused\n",
				w->source.name, t->pin->name,
				drift == RELAY_GONE ? "is gone" : "has changed");
	}
	if (report->fresh && !w->said_fresh)
		fprintf(stderr, "ward mcp wrap: %s: %u tools are new, and are not offered\n",
			w->source.name, report->fresh);
	w->said_fresh |= report->fresh > 0;
	w->instructions_differ = report->instructions != RELAY_SAME;
	if (!news && !report->fresh && !w->instructions_differ)
		return;
	fprintf(stderr, "ward mcp wrap: %s: to see the difference: ward mcp trust --name %s\n",
		w->source.name, w->source.name);
	if (news)
		listen_tell(s);
}

void wrap_ready(struct server *s, const struct pollfd *fds, size_t count)
{
	struct relay_report report;

	for (size_t i = 0; i < count; i++) {
		struct instance *one = &s->wrap->instances[i];
		ssize_t n;

		if (!fds[i].revents || one->end_ms || !one->run)
			continue;
		n = recv(one->control_fd, &report, sizeof(report), MSG_DONTWAIT);
		if (n == (ssize_t)sizeof(report))
			take_report(s, i, &report);
		else if (n >= 0 || (errno != EAGAIN && errno != EINTR))
			instance_end(one);
	}
}

int wrap_on_time(struct server *s, uint64_t now_ms)
{
	int wait = -1;

	for (size_t i = 0; s->wrap && i < s->wrap->instance_count; i++)
		wait = serve_sooner(wait, instance_on_time(&s->wrap->instances[i], now_ms));
	return wait;
}

int wrap_connect(struct server *s, const struct offer *offer, int *ret_fd, struct ward_err *e)
{
	return instance_connect(&s->wrap->instances[offer->wrapped->instance], &s->wrap->kind,
				ret_fd, e);
}

pid_t wrap_serves(const struct server *s, const struct offer *offer)
{
	return s->wrap->instances[offer->wrapped->instance].run;
}

void wrap_end(struct server *s, const struct offer *offer, pid_t run)
{
	struct instance *i = &s->wrap->instances[offer->wrapped->instance];

	if (i->run == run)
		instance_end(i);
}

bool wrap_owns(const struct server *s, pid_t pid)
{
	for (size_t i = 0; s->wrap && i < s->wrap->instance_count; i++)
		if (s->wrap->instances[i].run == pid || s->wrap->instances[i].relay == pid)
			return true;
	return false;
}

bool wrap_offers(const struct offer *offer)
{
	return !offer->wrapped || offer->wrapped->drift == RELAY_SAME;
}

void wrap_put_instructions(const struct server *s, struct json *j)
{
	static const char ours[] =
		"The tools of this server run in a sandbox of ward. A call that ward refuses is "
		"answered with isError and the reason: do not repeat it unchanged.";
	const struct wrap *w = s->wrap;
	auto_buf text = { 0 };

	buf_puts(&text, ours);
	if (w->source.pins.instructions && !w->instructions_differ) {
		buf_puts(&text, "\n\n");
		text_escape_lines(&text, w->source.pins.instructions,
				  strlen(w->source.pins.instructions));
	}
	json_string(j, "instructions", buf_text(&text));
	j->out->failed |= text.failed;
}

/* -- the verb */

static void end(struct server *s, struct wrap *w)
{
	for (size_t i = 0; i < w->instance_count; i++)
		instance_end(&w->instances[i]);
	for (size_t i = 0; i < w->instance_count; i++) {
		instance_stop(&w->instances[i]);
		instance_free(&w->instances[i]);
	}
	queue_end(s);
	ask_end(s);
	listen_end(s);
	catalog_drop(s->catalog);
	free(w->tools);
	call_place_close(&w->place);
	source_free(&w->source);
}

int mcp_wrap(struct options *o)
{
	struct wrap w = { 0 };
	struct server s = { .options = o, .watch_fd = -1, .wrap = &w };
	struct policy_errors errors = { 0 };
	struct ward_err e = { 0 };
	int r = 0, code = 0;

	s.catalog = catalog_use(calloc(1, sizeof(*s.catalog)));
	if (!s.catalog)
		r = ward_fail(&e, ENOMEM, "out of memory");
	if (r == 0)
		r = load(o, &w, s.catalog, &errors, &e);
	if (r == 0)
		r = work_init(&e);
	if (r == 0 && w.instance_count)
		r = instance_start(&w.instances[0], &w.kind, &e);
	if (errors.lines.len)
		ask_print_errors(&errors);
	strv_free(&errors.lines);
	if (r < 0)
		code = say_error(&e, o->json, r == -EINVAL ? EXIT_USAGE : EXIT_REFUSED);
	else
		serve_lines(&s);
	end(&s, &w);
	return code;
}
