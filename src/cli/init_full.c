/*
 * ward init --full: every field of a starter policy. In: what was found out about a project. Out: a
 * policy in which the fields that suit the project are set and the others stand as comments with
 * their defaults; comments and defaults are those of tables/policy.def, so that what is written is
 * what this build understands. The network stays a comment: a policy file goes over a profile, and
 * `mode: none` here would cut every agent off from its own service.
 */
#include "cli/init.h"

#include <string.h>

#define COLUMNS 90

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
	    strcmp(path, "filesystem.mode") == 0)
		return fallback;
	if (strcmp(path, "filesystem.hide") == 0)
		return INIT_HIDDEN;
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
		       { "network", false },
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

void init_full(const struct project *p, struct buf *out)
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
