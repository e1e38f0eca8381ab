/*
 * ward-image: the verbs of `ward image`, which starts it. In: a verb, options and words, as ward
 * has read them. Out: an exit code. A program of its own because what unpacks archives links what
 * ward must not: libarchive and a crypto library. Runs with the user's rights; what reads an
 * archive has fewer (confine.c).
 */
#include <errno.h>
#include <string.h>

#include "base/tool.h"
#include "image/image.h"
#include "policy/units.h"

static const struct {
	const char *name;
	int (*run)(const struct image_options *o);
} verbs[] = {
	{ "import", image_import }, { "pull", image_pull }, { "build", image_build },
	{ "ls", image_list },       { "rm", image_remove }, { "gc", image_collect },
};

static int read_bound(const char *option, const char *value, bool size, uint64_t *ret,
		      struct ward_err *e)
{
	char *end = NULL;
	int r = 0;

	if (size)
		r = units_parse_size(value, ret);
	else
		*ret = strtoull(value, &end, 10);
	if (r < 0 || (end && (*end || *value == '-')) || *ret == 0 || *ret > UINT64_C(1) << 50)
		return ward_fail(e, EINVAL, "%s %.100s: expected a %s", option, value,
				 size ? "size, 512M or 40Gi" : "number");
	return 0;
}

static const char *verb_name(size_t i)
{
	return i < ARRAY_LEN(verbs) ? verbs[i].name : NULL;
}

static bool *find_flag(void *options, const char *option)
{
	struct image_options *o = options;

	return strcmp(option, "--json") == 0    ? &o->json
	       : strcmp(option, "--quiet") == 0 ? &o->quiet
						: NULL;
}

static int set_value(void *options, const char *option, const char *value, struct ward_err *e)
{
	struct image_options *o = options;

	if (strcmp(option, "--max-size") == 0)
		return read_bound(option, value, true, &o->max_bytes, e);
	if (strcmp(option, "--max-files") == 0)
		return read_bound(option, value, false, &o->max_entries, e);
	if (strcmp(option, "--name") != 0)
		return ward_fail(e, EINVAL, "unknown option %.100s", option);
	o->name = value;
	return 0;
}

int main(int argc, char **argv)
{
	static const struct tool tool = { "ward-image", "ward image", verb_name, find_flag,
					  set_value };
	struct image_options o = { .max_bytes = UNPACK_BYTES_MAX,
				   .max_entries = UNPACK_ENTRIES_MAX };
	struct ward_err e = { 0 };
	int verb = tool_read(&tool, argv, &o, &o.words, &o.count, &e);

	(void)argc;
	return verb < 0 ? say_error(&e, o.json, EXIT_USAGE) : verbs[verb].run(&o);
}
