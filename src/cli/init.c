/*
 * ward init: a commented starter policy. In: a directory. Out: ward.yaml in it. The kind of project
 * is read off marker files; comments and defaults are those of tables/policy.def, so that what is
 * written is what this build understands. Fields that suit the project are set, the others stand
 * there as comments with their defaults. Never follows a link, never replaces a file unless asked
 * to; what was written is then accepted as by ward trust.
 */
#include "cli/cli.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "base/io.h"
#include "base/json.h"
#include "base/text.h"
#include "model/event.h"
#include "state/trust.h"

#define POLICY_NAME "ward.yaml"
#define TEMPORARY ".ward.yaml.new"
#define COLUMNS 90

struct kind {
	char name[12];
	char markers[8][20];
	bool compiles; /* compilers, linkers and test suites run: the wider set of system calls */
	char caches[20];
};

/* What was found out about a project. */
struct project {
	struct buf names;  /* "Python and C"; "" when no marker is there */
	struct buf caches; /* "[pip, uv]" */
	bool compiles;
};

static const struct kind kinds[] = {
	{ "Python",
	  { "pyproject.toml", "setup.py", "setup.cfg", "requirements.txt", "Pipfile", "tox.ini" },
	  false,
	  "pip, uv" },
	{ "Node", { "package.json", "deno.json", "tsconfig.json" }, false, "npm, yarn, pnpm" },
	{ "Rust", { "Cargo.toml" }, true, "cargo" },
	{ "Go", { "go.mod", "go.work" }, true, "go" },
	{ "C",
	  { "meson.build", "CMakeLists.txt", "configure.ac", "configure", "Makefile", "makefile",
	    "GNUmakefile" },
	  true,
	  "ccache" },
};

static void find_kinds(int dir_fd, struct project *p)
{
	struct stat st;

	for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
		for (size_t m = 0; m < ARRAY_LEN(kinds[i].markers) && kinds[i].markers[m][0]; m++) {
			if (fstatat(dir_fd, kinds[i].markers[m], &st, AT_SYMLINK_NOFOLLOW) < 0 ||
			    !S_ISREG(st.st_mode))
				continue;
			buf_printf(&p->names, "%s%s", p->names.len ? " and " : "", kinds[i].name);
			buf_printf(&p->caches, "%s%s", p->caches.len ? ", " : "[", kinds[i].caches);
			p->compiles |= kinds[i].compiles;
			break;
		}
	}
	if (p->caches.len)
		buf_puts(&p->caches, "]");
}

/* Appends help as comment lines at an indent. */
static void comment(struct buf *out, const char *indent, const char *help)
{
	size_t column = 0;

	while (*help) {
		size_t n = strcspn(help, " ");

		if (!column || column + 1 + n > COLUMNS) {
			buf_printf(out, "%s%s# ", column ? "\n" : "", indent);
			column = strlen(indent) + 2;
		} else {
			buf_puts(out, " ");
			column++;
		}
		buf_add(out, help, n);
		column += n;
		help += n + (help[n] == ' ');
	}
	buf_puts(out, "\n");
}

/* The value that a starter policy sets; NULL: the default, as a comment. */
static const char *starter_value(const char *path, const char *fallback, const struct project *p)
{
	if (strcmp(path, "version") == 0 || strcmp(path, "filesystem.workspace") == 0 ||
	    strcmp(path, "filesystem.mode") == 0 || strcmp(path, "network.mode") == 0)
		return fallback;
	if (strcmp(path, "filesystem.hide") == 0)
		return "[\".env\", \"*.key\"]";
	if (strcmp(path, "filesystem.caches") == 0)
		return p->caches.len ? buf_text(&p->caches) : NULL;
	if (strcmp(path, "process.syscalls") == 0)
		return p->compiles ? "build" : fallback;
	return NULL;
}

/* Whether a starter policy shows the group, and whether it sets anything in it: a group of comments
 * alone would be an empty map, so its name is a comment too. */
static bool is_shown(const char *path, bool *ret_set)
{
	static const struct {
		char name[12];
		bool set;
	} groups[] = { { "filesystem", true },
		       { "network", true },
		       { "process", true },
		       { "resources", false },
		       { "require", false } };
	size_t n = strcspn(path, ".");

	*ret_set = true;
	for (size_t i = 0; i < ARRAY_LEN(groups); i++)
		if (strncmp(groups[i].name, path, n) == 0 && !groups[i].name[n]) {
			*ret_set = groups[i].set;
			return true;
		}
	return strcmp(path, "version") == 0 || strcmp(path, "isolation") == 0;
}

static void add_group(struct buf *out, const char *name, const char *help)
{
	bool set;

	if (!is_shown(name, &set))
		return;
	buf_puts(out, "\n");
	comment(out, "", help);
	buf_printf(out, "%s%s:\n", set ? "" : "#", name);
}

static void add_field(struct buf *out, const struct project *p, const char *path,
		      const char *fallback, const char *later, const char *help)
{
	const char *dot = strchr(path, '.'), *indent = dot ? "  " : "";
	const char *value = starter_value(path, fallback, p);
	bool set;

	if (!is_shown(path, &set) || *later == '*')
		return;
	if (!set)
		indent = "#  ";
	comment(out, indent, help);
	buf_printf(out, "%s%s%s: %s\n", indent, value || !set ? "" : "#", dot ? dot + 1 : path,
		   value ? value : fallback);
}

static void make_policy(struct buf *out, const struct project *p)
{
	const char *names = buf_text(&p->names);

	buf_printf(out,
		   "# What an agent may do in this %s%sproject. ward check validates this file, "
		   "ward plan\n# shows its effect, ward trust accepts a change that grants more "
		   "than the defaults.\n\n",
		   names, *names ? " " : "");
#define GROUP(name, help) add_group(out, name, help);
#define FIELD(path, member, type, values, fallback, narrow, later, help)                           \
	add_field(out, p, path, fallback, later, help);
#include "policy.def"
}

/* Makes the file new, or in place of the old one when force is set. */
static int write_policy(int dir_fd, const struct buf *text, bool force, struct ward_err *e)
{
	const char *name = force ? TEMPORARY : POLICY_NAME;
	auto_fd fd = -1;
	int r;

	if (text->failed)
		return ward_fail(e, ENOMEM, "out of memory");
	fd = openat(dir_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
	if (fd < 0 && errno == EEXIST) {
		ward_fail(e, EEXIST, "%s already exists", name);
		return ward_remedy(e, "%s",
				   force ? "remove it" : "ward init --force overwrites it");
	}
	if (fd < 0)
		return ward_fail_errno(e, "cannot create %s", name);
	r = io_write_all(fd, text->data, text->len);
	if (r == 0 && force && renameat(dir_fd, name, dir_fd, POLICY_NAME) < 0)
		r = -errno;
	if (r == 0)
		return 0;
	unlinkat(dir_fd, name, 0);
	errno = -r;
	return ward_fail_errno(e, "cannot write %s", POLICY_NAME);
}

static int init_directory(const char *dir, bool force, struct project *p, struct ward_err *e)
{
	auto_fd dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	auto_free char *path = NULL;
	auto_buf text = { 0 };
	char hex[SHA256_HEX];
	int r;

	if (dir_fd < 0)
		return ward_fail_errno(e, "cannot open the directory %.300s", dir);
	find_kinds(dir_fd, p);
	make_policy(&text, p);
	r = write_policy(dir_fd, &text, force, e);
	if (r < 0)
		return r;
	if (!p->compiles && !p->caches.len)
		return 0; /* nothing in it is wider than the defaults */
	if (asprintf(&path, "%s/" POLICY_NAME, dir) < 0) {
		path = NULL;
		return ward_fail(e, ENOMEM, "out of memory");
	}
	/* of what was made here, not of what may lie there by now */
	sha256_hex(text.data, text.len, hex);
	return trust_add(hex, path, e);
}

int verb_init(struct options *o)
{
	const char *dir = o->word_count ? o->words[0] : ".";
	struct ward_err e = { 0 };
	struct project p = { 0 };
	auto_buf names = { 0 }, out = { 0 };
	struct json j = { .out = &out };
	int r = init_directory(dir, o->force, &p, &e);

	names = p.names;
	buf_free(&p.caches);
	if (r < 0)
		return say_error(&e, o->json, EXIT_REFUSED);
	if (o->json) {
		json_begin_object(&j, NULL);
		json_string(&j, "file", POLICY_NAME);
		json_string(&j, "directory", dir);
		json_string(&j, "project", names.len ? names.data : NULL);
		json_end_object(&j);
	} else {
		buf_puts(&out, "wrote ");
		text_escape(&out, dir);
		buf_printf(&out, "/" POLICY_NAME " for a %s%sproject; next: ward run -- CMD",
			   buf_text(&names), names.len ? " " : "");
	}
	buf_puts(&out, "\n");
	return say_out(&out, EXIT_FINE);
}
