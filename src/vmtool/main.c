/*
 * ward-vm-tool: the verbs of `ward vm`, which starts it. In: a verb, options and words, as ward has read them. Out: an exit code. A program of its own because it links libarchive, which ward must not. Runs with the user's rights; a machine that it
 * starts runs in a sandbox.
 */
#include <errno.h>
#include <string.h>

#include "policy/units.h"
#include "vmtool/tool.h"

static const struct {
	const char *name;
	int (*run)(const struct tool_options *o);
} verbs[] = { { "setup", tool_setup }, { "template", tool_template }, { "root", tool_root }, { "ls", tool_list } };

static int set_value(struct tool_options *o, const char *option, const char *value, struct ward_err *e)
{
	char *end = NULL;

	if (strcmp(option, "--from") == 0) {
		o->from = value;
	} else if (strcmp(option, "--image") == 0) {
		o->image = value;
	} else if (strcmp(option, "--accel") == 0) {
		o->accel = value;
		if (strcmp(value, "kvm") != 0 && strcmp(value, "tcg") != 0)
			return ward_fail(e, EINVAL, "--accel %.60s: expected kvm or tcg", value);
	} else if (strcmp(option, "--memory") == 0) {
		if (units_parse_size(value, &o->memory_bytes) < 0 || o->memory_bytes < (64u << 20) || o->memory_bytes > UINT64_C(1) << 40)
			return ward_fail(e, EINVAL, "--memory %.60s: expected a size of at least 64Mi", value);
		o->memory_bytes &= ~(uint64_t)0xfffff;
	} else if (strcmp(option, "--cpus") == 0) {
		o->cpus = strtoull(value, &end, 10);
		if (*end || o->cpus < 1 || o->cpus > 64)
			return ward_fail(e, EINVAL, "--cpus %.60s: expected a number from 1 to 64", value);
	} else {
		return ward_fail(e, EINVAL, "unknown option %.100s", option);
	}
	return 0;
}

static int read_options(char **argv, struct tool_options *o, struct ward_err *e)
{
	*o = (struct tool_options){ .accel = "kvm", .image = "host", .memory_bytes = VM_MEMORY_DEFAULT, .cpus = 1 };
	for (; *argv && strncmp(*argv, "--", 2) == 0; argv++) {
		const char *option = *argv;
		bool *flag = strcmp(option, "--json") == 0 ? &o->json : strcmp(option, "--quiet") == 0 ? &o->quiet : strcmp(option, "--network") == 0 ? &o->network : NULL;
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
		r = set_value(o, option, *argv, e);
		if (r < 0)
			return r;
	}
	o->words = argv;
	while (argv[o->count])
		o->count++;
	return 0;
}

int main(int argc, char **argv)
{
	struct tool_options o = { 0 };
	struct ward_err e = { 0 };

	if (argc < 2) {
		ward_fail(&e, EINVAL, "ward-vm-tool is started by ward vm");
		return tool_error(&e, false, TOOL_USAGE);
	}
	if (read_options(argv + 2, &o, &e) < 0)
		return tool_error(&e, o.json, TOOL_USAGE);
	for (size_t i = 0; i < ARRAY_LEN(verbs); i++)
		if (strcmp(verbs[i].name, argv[1]) == 0)
			return verbs[i].run(&o);
	ward_fail(&e, EINVAL, "%.100s is none of setup, template, root and ls", argv[1]);
	ward_remedy(&e, "ward vm --help explains them");
	return tool_error(&e, o.json, TOOL_USAGE);
}
