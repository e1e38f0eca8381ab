/*
 * Reading the command line of a program that is a verb of ward's. In: argv, as cli/hand_over.c puts
 * it together. Out: the number of the verb, options in the program's own struct, and words. Options
 * stand in front, each with its value in the next word.
 */
#include "base/tool.h"

#include <errno.h>
#include <string.h>

#include "base/buf.h"

static int unknown_verb(const struct tool *t, const char *name, struct ward_err *e)
{
	auto_buf names = { 0 };

	for (size_t i = 0; t->name(i); i++)
		buf_printf(&names, "%s%s",
			   i == 0           ? ""
			   : t->name(i + 1) ? ", "
					    : " and ",
			   t->name(i));
	ward_fail(e, EINVAL, "%.100s is not one of %s", name, buf_text(&names));
	return ward_remedy(e, "%s --help explains them", t->verb);
}

static int read_options(const struct tool *t, char **argv, void *options, char ***ret_words,
			size_t *ret_count, struct ward_err *e)
{
	for (; *argv && strncmp(*argv, "--", 2) == 0; argv++) {
		const char *option = *argv;
		bool *flag = t->flag(options, option);
		int r;

		if (strcmp(option, "--") == 0) {
			argv++;
			break;
		}
		if (flag) {
			*flag = true;
			continue;
		}
		if (!argv[1])
			return ward_fail(e, EINVAL, "%s needs a value", option);
		argv++;
		r = t->value(options, option, *argv, e);
		if (r < 0)
			return r;
	}
	*ret_words = argv;
	for (*ret_count = 0; argv[*ret_count]; ++*ret_count)
		;
	return 0;
}

int tool_read(const struct tool *t, char **argv, void *options, char ***ret_words,
	      size_t *ret_count, struct ward_err *e)
{
	int verb = 0, r;

	if (!argv[0] || !argv[1])
		return ward_fail(e, EINVAL, "%s is started by %s", t->program, t->verb);
	r = read_options(t, argv + 2, options, ret_words, ret_count, e);
	if (r < 0)
		return r;
	while (t->name((size_t)verb) && strcmp(t->name((size_t)verb), argv[1]) != 0)
		verb++;
	return t->name((size_t)verb) ? verb : unknown_verb(t, argv[1], e);
}
