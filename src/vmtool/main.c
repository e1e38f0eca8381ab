/*
 * ward-vm-tool: the verbs of `ward vm`, which starts it. In: a verb, options and words, as ward has
 * read them. Out: an exit code. A program of its own because it links libarchive, which ward must
 * not. Runs with the user's rights; a machine that it starts runs in a sandbox.
 */
#include <errno.h>
#include <string.h>

#include "base/tool.h"
#include "policy/units.h"
#include "vmtool/tool.h"

static const struct {
	const char *name;
	int (*run)(const struct tool_options *o);
} verbs[] = { { "setup", tool_setup },
	      { "template", tool_template },
	      { "root", tool_root },
	      { "ls", tool_list } };

static const char *verb_name(size_t i)
{
	return i < ARRAY_LEN(verbs) ? verbs[i].name : NULL;
}

static bool *find_flag(void *options, const char *option)
{
	struct tool_options *o = options;

	return strcmp(option, "--json") == 0      ? &o->json
	       : strcmp(option, "--quiet") == 0   ? &o->quiet
	       : strcmp(option, "--network") == 0 ? &o->network
						  : NULL;
}

static int set_value(void *options, const char *option, const char *value, struct ward_err *e)
{
	struct tool_options *o = options;
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
		if (units_parse_size(value, &o->memory_bytes) < 0 ||
		    o->memory_bytes < (96u << 20) || o->memory_bytes > UINT64_C(1) << 40)
			return ward_fail(e, EINVAL,
					 "--memory %.60s: expected a size of at least 96Mi, with "
					 "which a guest boots",
					 value);
		o->memory_bytes &= ~(uint64_t)0xfffff;
	} else if (strcmp(option, "--cpus") == 0) {
		o->cpus = strtoull(value, &end, 10);
		if (*end || o->cpus < 1 || o->cpus > 64)
			return ward_fail(e, EINVAL, "--cpus %.60s: expected a number from 1 to 64",
					 value);
	} else {
		return ward_fail(e, EINVAL, "unknown option %.100s", option);
	}
	return 0;
}

int main(int argc, char **argv)
{
	static const struct tool tool = { "ward-vm-tool", "ward vm", verb_name, find_flag,
					  set_value };
	struct tool_options o = {
		.accel = "kvm", .image = "host", .memory_bytes = VM_MEMORY_DEFAULT, .cpus = 1
	};
	struct ward_err e = { 0 };
	int verb = tool_read(&tool, argv, &o, &o.words, &o.count, &e);

	(void)argc;
	return verb < 0 ? say_error(&e, o.json, EXIT_USAGE) : verbs[verb].run(&o);
}
