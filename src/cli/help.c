/*
 * Help, from tables/verbs.def and tables/options.def. In: a verb. Out: text of at most 80 columns.
 * Off the start path of `ward run`; the text is reached through switches, not through tables of
 * pointers, which a position-independent program would have to relocate at every start.
 */
#include "cli/agent.h"
#include "model/event.h"

#include <errno.h>
#include <string.h>

#define WIDTH 79

enum verb_group {
#define VERB_GROUP(id, title) GROUP_##id,
#include "verb_groups.def"
	GROUPS
};

enum verb_shown { SHOWN_FIRST, SHOWN_REST };

struct verb_text {
	enum verb_group group;
	enum verb_shown shown;
	const char *args, *help, *about, *example, *example_help;
};

static struct verb_text verb_text(enum verb v)
{
	switch (v) {
#define VERB(id, n, min, max, words, group, shown, ...)                                            \
	case VERB_##id:                                                                            \
		return (struct verb_text){ GROUP_##group, SHOWN_##shown, __VA_ARGS__ };
#include "verbs.def"
	case VERBS:
		break;
	}
	return (struct verb_text){ GROUPS, SHOWN_REST, "", "", "", "", "" };
}

const char *verb_name(enum verb v)
{
	switch (v) {
#define VERB(id, name, ...)                                                                        \
	case VERB_##id:                                                                            \
		return #name;
#include "verbs.def"
	case VERBS:
		break;
	}
	return "";
}

int verb_find(const char *name)
{
	for (int v = 0; v < VERBS; v++)
		if (strcmp(verb_name((enum verb)v), name) == 0)
			return v;
	return -1;
}

/* Appends text from column `column` on, wrapped, continued at `indent`; \n begins a new
 * paragraph. */
static void wrap(struct buf *out, const char *text, size_t indent, size_t column)
{
	while (*text) {
		size_t n = strcspn(text, " \n");

		if (column > indent && column + 1 + n > WIDTH) {
			buf_printf(out, "\n%*s", (int)indent, "");
			column = indent;
		} else if (column > indent) {
			buf_puts(out, " ");
			column++;
		}
		buf_add(out, text, n);
		column += n;
		text += n;
		if (*text == '\n') {
			buf_printf(out, "\n\n%*s", (int)indent, "");
			column = indent;
		}
		text += *text != '\0';
	}
	buf_puts(out, "\n");
}

static void option_line(struct buf *out, const char *short_name, const char *name,
			const char *metavar, const char *help)
{
	char left[64];
	int n = snprintf(left, sizeof(left), "  %s%s%s --%s%s%s", *short_name ? "-" : " ",
			 *short_name ? short_name : " ", *short_name ? "," : " ", name,
			 *metavar ? " " : "", metavar);

	buf_puts(out, left);
	if (n > 27)
		buf_puts(out, "\n");
	buf_printf(out, "%*s", n > 27 ? 29 : 29 - n, "");
	wrap(out, help, 29, 29);
}

static void option_lines(enum verb v, struct buf *out)
{
	const uint64_t bit = options_of(v);

#define ROW(verbs, s, name, metavar, help)                                                         \
	if ((verbs)&bit)                                                                           \
		option_line(out, s, name, metavar, help);
#define FLAG(verbs, s, name, member, help) ROW(verbs, s, name, "", help)
#define TEXT(verbs, s, name, metavar, member, help) ROW(verbs, s, name, metavar, help)
#define MAYBE(verbs, s, name, metavar, member, help) ROW(verbs, s, name, "", help)
#define FIELD(verbs, s, name, metavar, kind, field, help) ROW(verbs, s, name, metavar, help)
#define SETS(verbs, s, name, field, value, help) ROW(verbs, s, name, "", help)
#include "options.def"
#undef ROW
#define ONE_OF(verbs, names)                                                                       \
	if ((verbs)&bit) {                                                                         \
		buf_puts(out, "  ");                                                               \
		wrap(out, "one at a time: " names, 2, 2);                                          \
	}
#define ALONE(verbs, name)                                                                         \
	if ((verbs)&bit)                                                                           \
		buf_puts(out, "  no argument with " name "\n");
#include "options_conflict.def"
}

static void help_verb(enum verb v, struct buf *out)
{
	struct verb_text t = verb_text(v);
	auto_buf usage = { 0 };

	buf_printf(out, "usage: ward %s", verb_name(v));
	buf_printf(&usage, "[OPTION...]%s%s", *t.args ? " " : "", t.args);
	wrap(out, buf_text(&usage), 12, out->len);
	buf_puts(out, "\n");
	wrap(out, t.about, 0, 0);
	buf_puts(out, "\noptions:\n");
	option_lines(v, out);
	buf_printf(out, "\nexample:\n  %s\n      ", t.example);
	wrap(out, t.example_help, 6, 6);
}

static const char *group_title(enum verb_group group)
{
	switch (group) {
#define VERB_GROUP(id, title)                                                                      \
	case GROUP_##id:                                                                           \
		return title;
#include "verb_groups.def"
	case GROUPS:
		break;
	}
	return "start here";
}

/* The verbs of one group; GROUPS: those that a newcomer needs first, which no group repeats. */
static void group_lines(enum verb_group group, struct buf *out)
{
	buf_printf(out, "\n%s:\n", group_title(group));
	for (int i = 0; i < VERBS; i++) {
		struct verb_text t = verb_text((enum verb)i);

		if (group == GROUPS ? t.shown != SHOWN_FIRST
				    : t.group != group || t.shown == SHOWN_FIRST)
			continue;
		buf_printf(out, "  %-12s", verb_name((enum verb)i));
		wrap(out, t.help, 14, 14);
	}
}

void help_text(enum verb v, struct buf *out)
{
	if (v != VERBS) {
		help_verb(v, out);
		return;
	}
	buf_puts(out, "usage: ward VERB [OPTION...] [ARGUMENT...]\n\n"
		      "Runs AI agents, and the code they write, in sandboxes.\n");
	group_lines(GROUPS, out);
	for (int g = 0; g < GROUPS; g++)
		group_lines((enum verb_group)g, out);
	buf_puts(out,
		 "\nward VERB --help explains a verb.\n\nexample:\n"
		 "  ward run -- python3 agent.py\n"
		 "      the agent sees this directory and the system's programs, nothing else\n");
}

int verb_help(struct options *o)
{
	auto_buf out = { 0 };
	int v = o->word_count ? verb_find(o->words[0]) : VERBS;
	struct ward_err e = { 0 };

	if (v < 0 && agent_is_known(o->words[0]))
		v = VERB_AGENT;
	if (v < 0) {
		ward_fail(&e, EINVAL, "unknown verb: %.200s", o->words[0]);
		ward_remedy(&e, "ward help lists the verbs");
		return say_error(&e, false, EXIT_USAGE);
	}
	help_text((enum verb)v, &out);
	return say_out(&out, EXIT_FINE);
}

int verb_version(struct options *o)
{
	auto_buf out = { 0 };

	buf_puts(&out,
		 o->json ? "{\"version\":\"" WARD_VERSION "\"}\n" : "ward " WARD_VERSION "\n");
	return say_out(&out, EXIT_FINE);
}
