/*
 * ward mcp install and uninstall. In: the name of a client. Out: its configuration with one entry
 * more, or less; everything else in it stays as it is, byte for byte. The change is shown before it
 * is written. What the file was is kept in the state directory: as long as it is what install
 * wrote, uninstall puts that back, and else it takes out the entry alone. A file that cannot be
 * read in one way only, a link, and a foreign entry are refused. Runs with the user's
 * rights.
 */
#include "cli/mcp/parts.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io.h"
#include "base/path.h"
#include "base/sha256.h"
#include "base/text.h"
#include "cli/ask.h"
#include "cli/difference.h"
#include "cli/mcp/pins.h"
#include "host/program.h"
#include "mcp/config.h"
#include "state/store.h"

#define KEPT_DIR "mcp-clients"

struct client {
	const char *name;
	const char *user_dir, *user_file;       /* beneath the home */
	const char *project_dir, *project_file; /* beneath the project; dir "": itself */
	const char *group;
	bool type, toml;
};

static const struct client clients[] = {
	{ "claude", "", ".claude.json", "", ".mcp.json", "mcpServers", true, false },
	{ "codex", ".codex", "config.toml", ".codex", "config.toml", "mcp_servers", false, true },
	{ "cursor", ".cursor", "mcp.json", ".cursor", "mcp.json", "mcpServers", false, false },
	{ "vscode", ".config/Code/User", "mcp.json", ".vscode", "mcp.json", "servers", true,
	  false },
	{ "gemini", ".gemini", "settings.json", ".gemini", "settings.json", "mcpServers", false,
	  false },
};

/* The file, while it is changed. */
struct target {
	const struct client *client;
	int dir_fd; /* -1: its directory is not there */
	char *path; /* absolute; owned */
	const char *file;
	bool there;
	mode_t mode;
	struct buf text, changed;
};

static void close_target(struct target *t)
{
	own_close_fd(&t->dir_fd);
	free(t->path);
	buf_free(&t->text);
	buf_free(&t->changed);
}

static const struct client *find_client(const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(clients); i++)
		if (strcmp(clients[i].name, name) == 0)
			return &clients[i];
	return NULL;
}

/* -- the file */

/* Enters each directory of dir, and makes those that are not there (make); links are refused. */
static int enter(struct target *t, const char *base, const char *dir, bool make, struct ward_err *e)
{
	auto_free char *copy = strdup(dir);
	char *rest = NULL, *word = copy ? strtok_r(copy, "/", &rest) : NULL;

	t->dir_fd = open(base, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (!copy || t->dir_fd < 0)
		return ward_fail_errno(e, "cannot open %.300s", base);
	for (; word; word = strtok_r(NULL, "/", &rest)) {
		auto_fd parent = take_fd(&t->dir_fd);

		if (make && mkdirat(parent, word, 0755) < 0 && errno != EEXIST)
			return ward_fail_errno(e, "cannot make %.300s", t->path);
		t->dir_fd = openat(parent, word, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (t->dir_fd < 0 && !(errno == ENOENT && !make))
			return ward_fail_errno(e, "%.300s: a directory on the way is none",
					       t->path);
		if (t->dir_fd < 0)
			return 0; /* not there, and not wanted yet */
	}
	return 0;
}

static int read_target(struct target *t, struct ward_err *e)
{
	struct stat st;
	auto_fd fd = -1;
	int r;

	t->mode = 0600;
	if (t->dir_fd < 0)
		return 0;
	fd = openat(t->dir_fd, t->file, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0 && errno == ENOENT)
		return 0;
	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode)) {
		ward_fail(e, errno == ELOOP ? ELOOP : EINVAL, "%.300s is no ordinary file",
			  t->path);
		return ward_remedy(e, "change the file that it leads to by hand");
	}
	t->there = true;
	t->mode = st.st_mode & 07777;
	r = io_read_all(fd, CONFIG_BYTES_MAX, &t->text);
	return r < 0 ? ward_fail(e, -r, "cannot read %.300s: %s", t->path, strerror(-r)) : 0;
}

static int open_target(const struct options *o, const struct client *c, struct target *t,
		       struct ward_err *e)
{
	const char *home = secure_getenv("HOME");
	const char *dir = o->mcp_project ? c->project_dir : c->user_dir;
	auto_free char *here = o->mcp_project ? realpath(".", NULL) : NULL;
	const char *base = o->mcp_project ? here : home;
	int r;

	*t = (struct target){ .client = c, .dir_fd = -1 };
	t->file = o->mcp_project ? c->project_file : c->user_file;
	if (!base || *base != '/')
		return ward_fail(e, ENOENT, "the home directory is not known");
	if (asprintf(&t->path, "%s%s%s/%s", base, *dir ? "/" : "", dir, t->file) < 0) {
		t->path = NULL;
		return ward_fail(e, ENOMEM, "out of memory");
	}
	r = enter(t, base, dir, false, e);
	return r < 0 ? r : read_target(t, e);
}

/* Writes beside it and renames. */
static int write_target(const struct options *o, struct target *t, const struct buf *text,
			struct ward_err *e)
{
	const char *dir = o->mcp_project ? t->client->project_dir : t->client->user_dir;
	auto_free char *here = o->mcp_project ? realpath(".", NULL) : NULL;
	char name[64];
	int r = 0;

	if (t->dir_fd < 0)
		r = enter(t, here ? here : secure_getenv("HOME"), dir, true, e);
	if (r < 0)
		return r;
	snprintf(name, sizeof(name), ".ward-new-%d", (int)getpid());

	auto_fd fd =
		openat(t->dir_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return ward_fail_errno(e, "cannot write beside %.300s", t->path);
	r = io_write_all(fd, buf_text(text), text->len);
	if (r == 0 && (fchmod(fd, t->mode) < 0 || fsync(fd) < 0 ||
		       renameat(t->dir_fd, name, t->dir_fd, t->file) < 0))
		r = -errno;
	if (r < 0)
		unlinkat(t->dir_fd, name, 0);
	return r < 0 ? ward_fail(e, -r, "cannot write %.300s: %s", t->path, strerror(-r)) : 0;
}

/* -- what it was */

static void kept_name(const struct target *t, char ret[SHA256_HEX])
{
	sha256_hex(t->path, strlen(t->path), ret);
}

static int open_kept(struct ward_err *e)
{
	auto_fd state = store_open(e);
	int fd;

	if (state < 0)
		return state;
	if (mkdirat(state, KEPT_DIR, 0700) < 0 && errno != EEXIST)
		return ward_fail_errno(e, "cannot make %s in the state directory", KEPT_DIR);
	fd = openat(state, KEPT_DIR, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return fd < 0 ? ward_fail_errno(e, "cannot open %s", KEPT_DIR) : fd;
}

/* The digest of what is written, whether there was a file, and what it had. */
static int keep(const struct target *t, struct ward_err *e)
{
	auto_fd dir = open_kept(e);
	char name[SHA256_HEX], hex[SHA256_HEX];
	auto_buf note = { 0 };
	int r;

	if (dir < 0)
		return dir;
	kept_name(t, name);
	sha256_hex(buf_text(&t->changed), t->changed.len, hex);
	buf_printf(&note, "%s %d\n", hex, t->there);
	buf_add(&note, buf_text(&t->text), t->text.len);

	auto_fd fd = openat(dir, name, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	r = fd < 0 ? -errno : note.failed ? -ENOMEM : io_write_all(fd, note.data, note.len);
	return r < 0 ? ward_fail(e, -r, "cannot keep what the file was: %s", strerror(-r)) : 0;
}

/* 1: it is what install wrote, and *ret is what it was before; *ret_there: whether there was one.
 * 0: it is not, or nothing was kept. */
static int recall(const struct target *t, struct buf *ret, bool *ret_there, struct ward_err *e)
{
	char name[SHA256_HEX], hex[SHA256_HEX];
	auto_fd dir = open_kept(e);
	auto_buf note = { 0 };
	size_t head = SHA256_HEX + 2; /* digits, space, 0 or 1, line end */

	if (dir < 0)
		return dir;
	kept_name(t, name);
	if (io_read_file(dir, name, CONFIG_BYTES_MAX + SHA256_HEX + 2, &note) < 0 ||
	    note.len < head)
		return 0;
	sha256_hex(buf_text(&t->text), t->text.len, hex);
	if (memcmp(note.data, hex, SHA256_HEX - 1) != 0)
		return 0;
	*ret_there = note.data[SHA256_HEX] == '1';
	buf_add(ret, note.data + head, note.len - head);
	return 1;
}

static void forget(const struct target *t)
{
	struct ward_err ignored = { 0 };
	auto_fd dir = open_kept(&ignored);
	char name[SHA256_HEX];

	kept_name(t, name);
	if (dir >= 0)
		unlinkat(dir, name, 0);
}

/* -- the entry */

static void add_option(struct strv *words, const char *option, const char *value, bool path)
{
	auto_free char *whole = value && path ? realpath(value, NULL) : NULL;

	if (!value)
		return;
	strv_add(words, option);
	strv_add(words, whole ? whole : value);
}

/* A server that was accepted, as it was. */
static int make_wrap_words(const struct options *o, struct strv *ret, struct ward_err *e)
{
	struct pins pins = { 0 };
	int r = pins_load(o->name, &pins, e);

	pins_free(&pins);
	if (r < 0)
		return r == -ENOENT ? ward_remedy(e,
						  "ward mcp trust --name %s -- SERVER..., or name "
						  "tools with -f or --session",
						  o->name)
				    : r;
	if (o->policy_file || o->profile || o->workspace || o->tools_agent || o->http ||
	    o->token_file) {
		ward_fail(e, EINVAL, "%s is installed as it was accepted", o->name);
		return ward_remedy(e, "give options of the sandbox to ward mcp trust");
	}
	strv_add(ret, "wrap");
	strv_add(ret, "--name");
	strv_add(ret, o->name);
	add_option(ret, "--approvals", o->approvals, false);
	return ret->failed ? ward_fail(e, ENOMEM, "out of memory") : 0;
}

static int make_words(const struct options *o, struct strv *ret, struct ward_err *e)
{
	auto_free char *ward = NULL;
	int r = program_path("ward", &ward, e);

	if (r < 0)
		return r;
	strv_add(ret, ward);
	strv_add(ret, "mcp");
	if (!o->tools_file && !o->mcp_session && o->name)
		return make_wrap_words(o, ret, e);
	strv_add(ret, "serve");
	if (!o->tools_file && !o->mcp_session) {
		ward_fail(e, EINVAL, "nothing to serve was named");
		return ward_remedy(e, "-f tools.yaml, --session, or --name NAME of a server that "
				      "ward mcp trust has accepted");
	}
	if (o->http || o->token_file) {
		ward_fail(e, EINVAL, "--http: clients are configured to start a server themselves");
		return ward_remedy(e, "start it yourself, and give the client its URL and token");
	}
	if (o->tools_file && access(o->tools_file, R_OK) < 0)
		return ward_fail_errno(e, "%.300s", o->tools_file);
	add_option(ret, "-f", o->tools_file, true);
	add_option(ret, "--agent", o->tools_agent, false);
	add_option(ret, "--approvals", o->approvals, false);
	if (o->mcp_session)
		strv_add(ret, "--session");
	add_option(ret, "-p", o->policy_file, true);
	add_option(ret, "--profile", o->profile, false);
	add_option(ret, "-w", o->workspace, true);
	return ret->failed ? ward_fail(e, ENOMEM, "out of memory") : 0;
}

static int refuse(const struct target *t, const char *why, struct ward_err *e)
{
	ward_fail(e, EINVAL, "%.300s is left alone: %s", t->path, why);
	return ward_remedy(e, "change it by hand");
}

static int add_entry(const struct options *o, struct target *t, const struct config_entry *entry,
		     struct ward_err *e)
{
	const char *why = "";
	int r = t->client->toml ? config_toml_add(&t->text, entry, &t->changed, &why)
				: config_json_add(&t->text, entry, &t->changed, &why);

	(void)o;
	if (r == -EEXIST) {
		ward_fail(e, EEXIST, "%.300s has a server %s already", t->path, entry->name);
		return ward_remedy(e, "ward mcp uninstall %s, or another name: --name NAME",
				   t->client->name);
	}
	return r == -EINVAL ? refuse(t, why, e) : r < 0 ? ward_fail(e, -r, "out of memory") : 0;
}

static int remove_entry(struct target *t, const struct config_entry *entry, struct ward_err *e)
{
	const char *why = "";
	int r = t->client->toml ? config_toml_remove(&t->text, entry, &t->changed, &why)
				: config_json_remove(&t->text, entry, &t->changed, &why);

	if (r == -ENOENT)
		return ward_fail(e, ENOENT, "%.300s has no server %s", t->path, entry->name);
	return r == -EINVAL ? refuse(t, why, e) : r < 0 ? ward_fail(e, -r, "out of memory") : 0;
}

/* Shows the difference and asks. 1: go on. */
static int agree(const struct options *o, const struct target *t, struct ward_err *e)
{
	auto_buf shown = { 0 };
	int r = difference_put(t->path, &t->text, t->path, &t->changed, &shown);

	if (r < 0)
		return ward_fail(e, -r, "cannot show the difference");
	(void)say_out(&shown, 0);
	if (o->dry_run)
		return 0;
	if (!o->yes)
		r = ask_person("write this? [y/N] ", "written", e);
	if (r == -EACCES)
		return ward_remedy(e, "--yes writes it without asking");
	return r < 0 ? r : 1;
}

/* -- the words */

static int run_install(const struct options *o, struct target *t, const struct config_entry *entry,
		       struct ward_err *e)
{
	int r = add_entry(o, t, entry, e);

	if (r == 0)
		r = agree(o, t, e);
	if (r <= 0)
		return r;
	r = keep(t, e);
	return r < 0 ? r : write_target(o, t, &t->changed, e);
}

static int run_uninstall(const struct options *o, struct target *t,
			 const struct config_entry *entry, struct ward_err *e)
{
	auto_buf before = { 0 };
	bool there = true;
	int r = recall(t, &before, &there, e), exact = r > 0;

	if (r == 0)
		r = remove_entry(t, entry, e);
	else if (r > 0)
		buf_add(&t->changed, buf_text(&before), before.len);
	if (r >= 0)
		r = agree(o, t, e);
	if (r <= 0)
		return r;
	r = exact && !there ? unlinkat(t->dir_fd, t->file, 0) : write_target(o, t, &t->changed, e);
	if (r == 0)
		forget(t);
	return r;
}

static int run(struct options *o, bool install)
{
	const struct client *c = find_client(o->words[0]);
	auto_strv words = { 0 };
	struct target t = { .dir_fd = -1 };
	struct ward_err e = { 0 };
	const char *name = o->name ? o->name : "ward";
	int r = 0;

	if (!c) {
		ward_fail(&e, EINVAL, "unknown client: %.100s", o->words[0]);
		ward_remedy(&e, "known are claude, codex, cursor, vscode and gemini");
		return say_error(&e, o->json, EXIT_USAGE);
	}
	if (!*name || strlen(name) > 64 ||
	    strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") !=
		    strlen(name)) {
		ward_fail(&e, EINVAL, "a name has letters, digits, _ and -, at most 64");
		return say_error(&e, o->json, EXIT_USAGE);
	}
	const struct config_entry entry = { c->group, name, &words, c->type };

	if (install)
		r = make_words(o, &words, &e);
	if (r == 0)
		r = open_target(o, c, &t, &e);
	if (r == 0)
		r = install ? run_install(o, &t, &entry, &e) : run_uninstall(o, &t, &entry, &e);
	close_target(&t);
	return r < 0 ? say_error(&e, o->json, EXIT_REFUSED) : EXIT_FINE;
}

int mcp_install(struct options *o)
{
	return run(o, true);
}

int mcp_uninstall(struct options *o)
{
	return run(o, false);
}
