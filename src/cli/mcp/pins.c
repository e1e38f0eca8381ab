/*
 * What was accepted of MCP servers (pins.h). In: definitions that a server listed, and that a
 * person has seen. Out: a file in mcp-servers of the state directory, which only its owner can
 * write; it is replaced as a whole. The definitions came from a server that is not trusted: they
 * are read by the policy's reader, and shown with everything escaped. Runs with the user's rights.
 */
#include "cli/mcp/pins.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/io.h"
#include "base/json.h"
#include "base/text.h"
#include "state/store.h"
#include "tools/json_schema.h"
#include "tools/mcp_pin.h"

#define PINS_DIR "mcp-servers"

static const char name_set[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";

bool pins_is_name(const char *name)
{
	return *name && *name != '-' && strlen(name) <= PINS_NAME_MAX &&
	       strspn(name, name_set) == strlen(name);
}

/* Programs that run a script or a package, whose name says more. */
static bool is_launcher(const char *word)
{
	static const char *const names[] = { "node",   "nodejs",  "npx",  "bun", "deno",
					     "python", "python3", "uv",   "uvx", "sh",
					     "bash",   "env",     "pipx", "run", "exec",
					     "tool",   "java",    "ruby", "perl" };
	const char *base = strrchr(word, '/') ? strrchr(word, '/') + 1 : word;

	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (strcmp(base, names[i]) == 0)
			return true;
	return *word == '-';
}

void pins_default_name(char *const *command, char ret[PINS_NAME_MAX + 1])
{
	const char *word = command[0], *base;
	size_t n = 0;

	for (size_t i = 0; command[i] && is_launcher(word); i++)
		word = command[i];
	if (is_launcher(word))
		word = command[0];
	base = strrchr(word, '/') && strrchr(word, '/')[1] ? strrchr(word, '/') + 1 : word;
	for (; *base && n < PINS_NAME_MAX && !(n && (*base == '@' || *base == '.')); base++)
		if (strchr(name_set, *base) && !(n == 0 && *base == '-'))
			ret[n++] = *base;
	ret[n] = '\0';
	if (!n)
		snprintf(ret, PINS_NAME_MAX + 1, "server");
}

/* -- reading */

static const char *text_of(const struct node *n, const char *key)
{
	const struct node *m = n && n->kind == NODE_MAP ? node_get(n, key) : NULL;

	return m && m->kind == NODE_STRING ? m->text : NULL;
}

static const struct node *map_of(const struct node *n, const char *key)
{
	const struct node *m = node_get(n, key);

	return m && m->kind == NODE_MAP ? m : NULL;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct pinned_tool *)a)->name, ((const struct pinned_tool *)b)->name);
}

static bool take_tool(struct pins *p, const struct node *n)
{
	struct pinned_tool *t = &p->tools[p->count];
	struct schema_error ignored;
	auto_buf text = { 0 };

	if (n->kind != NODE_MAP || !text_of(n, "name"))
		return false;
	*t = (struct pinned_tool){ .name = text_of(n, "name"),
				   .node = n,
				   .input = map_of(n, "inputSchema"),
				   .output = map_of(n, "outputSchema") };
	if (!t->input || json_schema_check(t->input, false, &ignored) < 0)
		return false;
	if (t->output && json_schema_check(t->output, false, &ignored) < 0)
		t->output = NULL;
	mcp_canonical(n, "_meta", &text);
	sha256_hex(buf_text(&text), text.len, t->hex);
	p->count++;
	return !text.failed;
}

static int take(struct pins *p, const char *name, struct ward_err *e)
{
	const struct node *tools = map_of(p->root, "said"), *command;
	bool fine = true;

	p->name = strdup(name);
	p->policy = text_of(p->root, "policy");
	p->cwd = text_of(p->root, "cwd");
	p->accepted = text_of(p->root, "accepted");
	p->instructions = text_of(tools, "instructions");
	command = node_get(p->root, "command");
	tools = tools ? node_get(tools, "tools") : NULL;
	fine = p->name && p->policy && p->cwd && p->accepted && command && tools &&
	       command->kind == NODE_LIST && tools->kind == NODE_LIST;
	p->tools = fine ? calloc(tools->count + 1u, sizeof(*p->tools)) : NULL;
	for (const struct node *n = fine ? command->first : NULL; n; n = n->next)
		strv_add(&p->command, n->text ? n->text : "");
	for (const struct node *n = p->tools ? tools->first : NULL; fine && n; n = n->next)
		fine = take_tool(p, n);
	if (!fine || !p->tools || !p->command.len || p->command.failed)
		return ward_fail(e, EINVAL, "what was accepted of %s cannot be read", name);
	qsort(p->tools, p->count, sizeof(*p->tools), by_name);
	return 0;
}

static int open_dir(struct ward_err *e)
{
	auto_fd state = store_open(e);

	return state < 0 ? state : store_open_dir(state, PINS_DIR, e);
}

int pins_load(const char *name, struct pins *ret, struct ward_err *e)
{
	struct ward_err why = { 0 };
	struct reader r = { .name = "", .e = &why };
	auto_fd dir = open_dir(e);
	auto_buf text = { 0 };
	int result;

	*ret = (struct pins){ 0 };
	if (dir < 0)
		return dir;
	result = io_read_file(dir, name, NODE_BYTES_MAX, &text);
	if (result == -ENOENT)
		return ward_fail(e, ENOENT, "no tools of %s were ever accepted", name);
	if (result < 0)
		return ward_fail(e, -result, "what was accepted of %s: %s", name,
				 strerror(-result));
	ret->root = json_read(&r, (const uint8_t *)buf_text(&text), text.len);
	if (!ret->root || r.count || ret->root->kind != NODE_MAP)
		return ward_fail(e, EINVAL, "what was accepted of %s cannot be read: %.200s", name,
				 why.why);
	return take(ret, name, e);
}

void pins_free(struct pins *p)
{
	free(p->name);
	free(p->tools);
	strv_free(&p->command);
	node_free(p->root);
	*p = (struct pins){ 0 };
}

const struct pinned_tool *pins_find(const struct pins *p, const char *tool)
{
	for (size_t i = 0; i < p->count; i++)
		if (strcmp(p->tools[i].name, tool) == 0)
			return &p->tools[i];
	return NULL;
}

int pins_check_command(const struct pins *p, char *const *command, struct ward_err *e)
{
	size_t i = 0;

	while (command[i] && i < p->command.len && strcmp(command[i], p->command.items[i]) == 0)
		i++;
	if (!command[i] && i == p->command.len)
		return 0;
	ward_fail(e, EEXIST, "what was accepted as %s is another command", p->name);
	return ward_remedy(e,
			   "give this one another name (--name NAME), or accept it: ward mcp "
			   "trust --name %s",
			   p->name);
}

/* -- writing */

static void put_record(const struct pins_draft *d, struct buf *out)
{
	struct json j = { .out = out };
	char at[32];
	time_t now = time(NULL);
	struct tm tm;

	strftime(at, sizeof(at), "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &tm));
	json_begin_object(&j, NULL);
	json_uint(&j, "version", 1);
	json_string(&j, "name", d->name);
	json_begin_array(&j, "command");
	for (size_t i = 0; d->command[i]; i++)
		json_string(&j, NULL, d->command[i]);
	json_end_array(&j);
	json_string(&j, "accepted", at);
	json_string(&j, "cwd", d->cwd);
	json_string(&j, "policy", d->policy);
	buf_puts(out, ",\"said\":");
	mcp_canonical(d->said, NULL, out);
	json_end_object(&j);
}

int pins_save(const struct pins_draft *d, struct ward_err *e)
{
	auto_fd dir = open_dir(e), fd = -1;
	auto_buf text = { 0 };
	char name[80];
	int r;

	if (dir < 0)
		return dir;
	put_record(d, &text);
	if (text.failed)
		return ward_fail(e, ENOMEM, "out of memory");
	if (text.len > NODE_BYTES_MAX)
		return ward_fail(e, EFBIG, "the definitions of %s have more than 1 MiB", d->name);
	snprintf(name, sizeof(name), ".new-%d", (int)getpid());
	fd = openat(dir, name, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	r = fd < 0 ? -errno : io_write_all(fd, text.data, text.len);
	if (r == 0 && (fsync(fd) < 0 || renameat(dir, name, dir, d->name) < 0))
		r = -errno;
	if (r < 0)
		unlinkat(dir, name, 0);
	return r < 0 ? ward_fail(e, -r, "cannot keep what was accepted: %s", strerror(-r)) : 0;
}

int pins_remove(const char *name, struct ward_err *e)
{
	auto_fd dir = open_dir(e);

	if (dir < 0)
		return dir;
	if (unlinkat(dir, name, 0) == 0)
		return 0;
	return errno == ENOENT ? ward_fail(e, ENOENT, "no tools of %.64s were ever accepted", name)
			       : ward_fail_errno(e, "cannot forget %.64s", name);
}

int pins_list(struct strv *ret, struct ward_err *e)
{
	int fd = open_dir(e);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *entry;

	if (fd < 0)
		return fd;
	if (!dir) {
		close(fd);
		return ward_fail_errno(e, "cannot list " PINS_DIR);
	}
	while ((entry = readdir(dir)))
		if (pins_is_name(entry->d_name))
			strv_add(ret, entry->d_name);
	closedir(dir);
	strv_sort(ret);
	return ret->failed ? ward_fail(e, ENOMEM, "out of memory") : 0;
}

/* -- showing */

/* Each value on a line of its own, behind the way to it. */
static void show_value(const struct node *n, const char *way, struct buf *out)
{
	unsigned at = 0;

	if ((n->kind == NODE_MAP || n->kind == NODE_LIST) && n->first) {
		for (const struct node *c = n->first; c; c = c->next) {
			auto_buf further = { 0 };

			buf_puts(&further, way);
			buf_puts(&further, *way ? "." : "");
			if (c->key)
				buf_puts(&further, c->key);
			else
				buf_printf(&further, "%u", at++);
			show_value(c, buf_text(&further), out);
		}
		return;
	}
	buf_puts(out, "  ");
	text_escape(out, way);
	buf_puts(out, ": ");
	if (n->kind == NODE_MAP || n->kind == NODE_LIST)
		buf_puts(out, n->kind == NODE_MAP ? "{}" : "[]");
	else
		text_escape(out, n->text ? n->text : "null");
	buf_puts(out, "\n");
}

static void show_tool(const struct node *n, struct buf *out)
{
	const char *name = text_of(n, "name");

	buf_puts(out, "tool ");
	text_escape(out, name ? name : "?");
	buf_puts(out, "\n");
	for (const struct node *c = n->kind == NODE_MAP ? n->first : NULL; c; c = c->next)
		if (strcmp(c->key, "name") != 0 && strcmp(c->key, "_meta") != 0)
			show_value(c, c->key, out);
}

static int by_tool(const void *a, const void *b)
{
	const char *one = text_of(*(const struct node *const *)a, "name");
	const char *other = text_of(*(const struct node *const *)b, "name");

	return strcmp(one ? one : "", other ? other : "");
}

void pins_show(const char *instructions, const struct node *tools, struct buf *out)
{
	const struct node **sorted = calloc(tools->count + 1u, sizeof(struct node *));
	size_t count = 0;

	if (!sorted) {
		out->failed = true;
		return;
	}
	if (instructions) {
		buf_puts(out, "instructions: ");
		text_escape(out, instructions);
		buf_puts(out, "\n");
	}
	for (const struct node *n = tools->first; n; n = n->next)
		sorted[count++] = n;
	qsort(sorted, count, sizeof(*sorted), by_tool);
	for (size_t i = 0; i < count; i++)
		show_tool(sorted[i], out);
	free(sorted);
}
