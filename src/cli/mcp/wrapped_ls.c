/*
 * ward mcp ls: what accepted servers can do. In: the records of ward mcp trust. Out: for people
 * each server with the walls of its sandbox and its tools, within 80 columns; or all of it as JSON.
 * The walls are those that it was accepted with: ward mcp wrap with options of its own has others.
 * Texts are a server's, and are escaped.
 */
#include "cli/mcp/wrap.h"

#include <errno.h>
#include <string.h>

#include "base/text.h"

#define NAME_COLUMN 28
#define DESCRIPTION_BYTES 50

static const char *text_of(const struct node *n, const char *key)
{
	const struct node *m = node_get(n, key);

	return m && m->kind == NODE_STRING ? m->text : "";
}

/* Its first line, as far as there is room; whole characters. */
static void put_brief(const char *text, size_t room, struct buf *out)
{
	auto_buf first = { 0 }, shown = { 0 };
	size_t n;

	buf_add(&first, text, strcspn(text, "\r\n"));
	text_escape(&shown, buf_text(&first));
	n = shown.len;
	if (n > room) {
		n = room > 3 ? room - 3 : 0;
		while (n && ((unsigned char)shown.data[n] & 0xc0) == 0x80)
			n--;
	}
	buf_add(out, buf_text(&shown), n);
	buf_puts(out, n < shown.len ? "..." : "");
}

static void put_tool(const struct pinned_tool *t, struct buf *out)
{
	size_t begin = out->len, room = DESCRIPTION_BYTES;

	buf_printf(out, "  %s ", t->name);
	while (out->len - begin < NAME_COLUMN)
		buf_puts(out, " ");
	if (out->len - begin > NAME_COLUMN) {
		buf_puts(out, "\n");
		buf_printf(out, "%*s", NAME_COLUMN, "");
	}
	put_brief(text_of(t->node, "description"), room, out);
	buf_puts(out, "\n");
}

static void put_server(const struct pins *p, const struct policy *policy, struct buf *out)
{
	auto_buf command = { 0 };

	for (size_t i = 0; i < p->command.len; i++)
		buf_printf(&command, "%s%s", i ? " " : "", p->command.items[i]);
	buf_printf(out, "%s, accepted %.10s\n  command ", p->name, p->accepted);
	put_brief(buf_text(&command), 68, out);
	buf_puts(out, "\n");
	source_put_walls(policy, "  ", out);
	for (size_t i = 0; i < p->count; i++)
		put_tool(&p->tools[i], out);
	out->failed |= command.failed;
}

static void json_list(const char *key, const struct policy *p, bool writable, struct json *j)
{
	json_begin_array(j, key);
	if ((p->fs_mode == FS_MODE_READ_WRITE) == writable)
		json_string(j, NULL, p->fs_workspace);
	for (size_t i = 0; i < p->fs_host_mounts.len; i++)
		if (p->fs_host_mounts.items[i].writable == writable)
			json_string(j, NULL, p->fs_host_mounts.items[i].path);
	json_end_array(j);
}

static void json_server(const struct pins *p, const struct policy *policy, const struct walls *w,
			struct json *j)
{
	json_begin_object(j, NULL);
	json_string(j, "name", p->name);
	json_string(j, "accepted", p->accepted);
	json_begin_array(j, "command");
	for (size_t i = 0; i < p->command.len; i++)
		json_string(j, NULL, p->command.items[i]);
	json_end_array(j);
	json_list("reads", policy, false, j);
	json_list("writes", policy, true, j);
	json_string(j, "network", policy_enum_name(POLICY_F_net_mode, policy->net_mode));
	json_begin_array(j, "hosts");
	for (size_t i = 0; i < policy->net_egress.len; i++)
		json_string(j, NULL, policy->net_egress.items[i]);
	json_end_array(j);
	json_bool(j, "read_only", !w->writes && !w->world);
	json_begin_array(j, "tools");
	for (size_t i = 0; i < p->count; i++) {
		json_begin_object(j, NULL);
		json_string(j, "name", p->tools[i].name);
		json_string(j, "description", text_of(p->tools[i].node, "description"));
		json_string(j, "sha256", p->tools[i].hex);
		json_end_object(j);
	}
	json_end_array(j);
	json_end_object(j);
}

static int put_one(const char *name, bool json, struct json *j, struct ward_err *e)
{
	struct policy policy = { 0 };
	struct pins p = { 0 };
	struct walls w = { 0 };
	int r = pins_load(name, &p, e);

	if (r == 0)
		r = source_walls(p.policy, &w, &policy, e);
	if (r == 0 && json)
		json_server(&p, &policy, &w, j);
	else if (r == 0)
		put_server(&p, &policy, j->out);
	policy_clear(&policy);
	pins_free(&p);
	return r;
}

int mcp_ls(struct options *o)
{
	struct ward_err e = { 0 };
	auto_strv names = { 0 };
	auto_buf out = { 0 };
	struct json j = { .out = &out };
	int r = pins_list(&names, &e), code = EXIT_FINE;

	if (r == 0 && o->json)
		json_begin_list(&j, "servers");
	for (size_t i = 0; r == 0 && i < names.len; i++) {
		if (i && !o->json)
			buf_puts(&out, "\n");
		if (put_one(names.items[i], o->json, &j, &e) < 0)
			code = say_error(&e, o->json, EXIT_REFUSED); /* the others are listed */
	}
	if (r < 0)
		return say_error(&e, o->json, EXIT_REFUSED);
	if (o->json)
		json_end_list(&j);
	return say_out(&out, code);
}
