/*
 * The recipe of an image: what `ward image build` makes. In: YAML. Out: struct recipe, or every
 * error with its line. A recipe names a base image, files of its own directory, commands that run
 * in a sandbox, and how the image wishes to be run:
 *
 *	from: base
 *	files: [{from: app, to: /opt/app}]
 *	packages: [git, python3-minimal]	of Debian's kind, from the base image's own sources
 *	run: ["cp /opt/app/tool /usr/bin/tool"]
 *	env: [GREETING=hello]
 *	entrypoint: [/usr/bin/tool]		and cmd, workdir, user
 *
 * Paths of `from` stay beneath the recipe's directory, those of `to` beneath the root: both are
 * cleaned by entry.c.
 */
#include "image/recipe.h"

#include <errno.h>
#include <string.h>

#include "image/entry.h"
#include "policy/node.h"

#define ENTRIES_MAX 1024

static struct place place_of(const struct node *n)
{
	return (struct place){ n->line, n->column };
}

static char *read_text(struct reader *r, const struct node *n, const char *what)
{
	if ((n->kind == NODE_STRING || n->kind == NODE_WORD) && *n->text && strlen(n->text) < 32768)
		return strdup(n->text);
	reader_error(r, place_of(n), NULL, "%s: expected text", what);
	return NULL;
}

static void read_list(struct reader *r, const struct node *n, const char *what, struct strv *out)
{
	if (n->kind != NODE_LIST || n->count > ENTRIES_MAX) {
		reader_error(r, place_of(n), NULL, "%s: expected a list", what);
		return;
	}
	for (const struct node *item = n->first; item; item = item->next) {
		auto_free char *text = read_text(r, item, what);

		if (text)
			strv_add(out, text);
	}
}

/* A path, cleaned; absolute where it is one of the image. */
static char *read_path(struct reader *r, const struct node *map, const char *key, bool absolute)
{
	const struct node *n = node_get(map, key);
	char clean[ENTRY_PATH_MAX];
	auto_free char *text = NULL;
	const char *wrong;

	if (!n) {
		reader_error(r, place_of(map), NULL, "files: %s is missing", key);
		return NULL;
	}
	text = read_text(r, n, key);
	if (!text)
		return NULL;
	if (absolute && *text != '/') {
		reader_error(r, place_of(n), NULL, "to: expected an absolute path");
		return NULL;
	}
	wrong = entry_read_link(text + absolute, strlen(text + absolute), clean);
	if (wrong && absolute && strspn(text, "/.") == strlen(text))
		wrong = "name the file or directory, not the root";
	if (wrong) {
		reader_error(r, place_of(n), NULL, "%s: %s", key, wrong);
		return NULL;
	}
	return strdup(clean);
}

static void read_files(struct reader *r, const struct node *n, struct recipe *out)
{
	if (n->kind != NODE_LIST || n->count > ENTRIES_MAX) {
		reader_error(r, place_of(n), NULL, "files: expected a list of {from, to}");
		return;
	}
	out->files = calloc(n->count + 1, sizeof(*out->files));
	if (!out->files) {
		reader_out_of_memory(r);
		return;
	}
	for (const struct node *item = n->first; item; item = item->next) {
		struct recipe_file *f = &out->files[out->file_count];

		if (item->kind != NODE_MAP || item->count != 2) {
			reader_error(r, place_of(item), NULL,
				     "files: expected {from: PATH, to: PATH}");
			continue;
		}
		out->file_count++;
		f->from = read_path(r, item, "from", false);
		f->to = read_path(r, item, "to", true);
	}
}

static void check_env(struct reader *r, const struct node *n, const struct strv *env)
{
	for (size_t i = 0; i < env->len; i++)
		if (*env->items[i] == '=' || !strchr(env->items[i], '='))
			reader_error(r, place_of(n), NULL, "env: expected NAME=VALUE");
}

/* NAME or NAME=VERSION in Debian's words: nothing that a package manager could take for an option,
 * a file or a removal ("name-"). */
static bool is_package(const char *text)
{
	static const char
		name[] = "abcdefghijklmnopqrstuvwxyz0123456789",
		more[] = "abcdefghijklmnopqrstuvwxyz0123456789+.-",
		version[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+.:~-";
	size_t n = strspn(text, more);

	if (n < 2 || n > 200 || !strchr(name, text[0]) || text[n - 1] == '-' ||
	    (text[n - 1] == '+' && text[n - 2] != '+'))
		return false;
	return !text[n] ||
	       (text[n] == '=' && text[n + 1] && !text[n + 1 + strspn(text + n + 1, version)]);
}

static void check_packages(struct reader *r, const struct node *n, const struct strv *packages)
{
	for (size_t i = 0; i < packages->len; i++)
		if (!is_package(packages->items[i]))
			reader_error(r, place_of(n), NULL,
				     "packages: %.60s is not a package name (NAME or NAME=VERSION)",
				     packages->items[i]);
}

static void read_key(struct reader *r, const struct node *n, struct recipe *out)
{
	const struct {
		const char *key;
		char **text;
		struct strv *list;
	} rows[] = {
		{ "from", &out->from, NULL },      { "workdir", &out->wish.workdir, NULL },
		{ "user", &out->wish.user, NULL }, { "run", NULL, &out->run },
		{ "env", NULL, &out->wish.env },   { "entrypoint", NULL, &out->wish.entrypoint },
		{ "cmd", NULL, &out->wish.cmd }
	};

	if (strcmp(n->key, "packages") == 0) {
		read_list(r, n, n->key, &out->packages);
		check_packages(r, n, &out->packages);
		return;
	}
	if (strcmp(n->key, "files") == 0) {
		read_files(r, n, out);
		return;
	}
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		if (strcmp(rows[i].key, n->key) != 0)
			continue;
		if (rows[i].text)
			*rows[i].text = read_text(r, n, n->key);
		else
			read_list(r, n, n->key, rows[i].list);
		if (rows[i].list == &out->wish.env)
			check_env(r, n, &out->wish.env);
		return;
	}
	reader_error(r, (struct place){ n->key_line, n->key_column },
		     "known are from, files, packages, run, env, entrypoint, cmd, workdir and user",
		     "unknown key %.60s", n->key);
}

int recipe_read(const char *name, const uint8_t *bytes, size_t n, struct recipe *ret,
		struct policy_errors *errors)
{
	struct reader r = { .name = name, .errors = errors };
	struct recipe out = { 0 };
	auto_node root = yaml_read(&r, bytes, n);

	if (root && root->kind != NODE_MAP)
		reader_error(&r, place_of(root), NULL, "expected a map: from, files, run ...");
	for (const struct node *k = root && root->kind == NODE_MAP ? root->first : NULL; k;
	     k = k->next)
		read_key(&r, k, &out);
	if (!r.count && !out.from)
		reader_error(&r, (struct place){ 1, 1 },
			     "from: NAME, or from: scratch for an empty root",
			     "the base image is missing");
	if (r.count || out.run.failed || out.wish.env.failed) {
		recipe_clear(&out);
		return -EINVAL;
	}
	*ret = out;
	return 0;
}

void recipe_clear(struct recipe *r)
{
	for (size_t i = 0; i < r->file_count; i++) {
		free(r->files[i].from);
		free(r->files[i].to);
	}
	free(r->files);
	free(r->from);
	strv_free(&r->packages);
	strv_free(&r->run);
	image_wish_clear(&r->wish);
	*r = (struct recipe){ 0 };
}
