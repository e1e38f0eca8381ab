/*
 * ward-image: the verbs of `ward image`, which starts it. In: a verb, options and words, as ward has read them. Out: an exit code. A program of its own because what unpacks
 * archives links what ward must not: libarchive and a crypto library. Runs with the user's rights; what reads an archive has fewer (confine.c).
 */
#include <errno.h>
#include <string.h>

#include "image/image.h"
#include "policy/units.h"

static const struct {
	const char *name;
	int (*run)(const struct image_options *o);
} verbs[] = {
	{ "import", image_import }, { "build", image_build }, { "pull", image_pull }, { "ls", image_list }, { "rm", image_remove }, { "gc", image_collect },
};

static int read_bound(const char *option, const char *value, bool size, uint64_t *ret, struct ward_err *e)
{
	char *end = NULL;
	int r = 0;

	if (size)
		r = units_parse_size(value, ret);
	else
		*ret = strtoull(value, &end, 10);
	if (r < 0 || (end && (*end || *value == '-')) || *ret == 0 || *ret > UINT64_C(1) << 50)
		return ward_fail(e, EINVAL, "%s %.100s: expected a %s", option, value, size ? "size, 512M or 40Gi" : "number");
	return 0;
}

/* Options stand in front, each with its value in the next word. */
static int read_options(char **argv, struct image_options *o, struct ward_err *e)
{
	*o = (struct image_options){ .max_bytes = UNPACK_BYTES_MAX, .max_entries = UNPACK_ENTRIES_MAX };
	for (; *argv && strncmp(*argv, "--", 2) == 0; argv++) {
		const char *option = *argv;
		int r = 0;

		if (strcmp(option, "--") == 0) {
			argv++;
			break;
		}
		if (strcmp(option, "--json") == 0 || strcmp(option, "--quiet") == 0) {
			*(option[2] == 'j' ? &o->json : &o->quiet) = true;
			continue;
		}
		if (!argv[1])
			return ward_fail(e, EINVAL, "%s needs a value", option);
		argv++;
		if (strcmp(option, "--name") == 0)
			o->name = *argv;
		else if (strcmp(option, "--max-size") == 0)
			r = read_bound(option, *argv, true, &o->max_bytes, e);
		else if (strcmp(option, "--max-files") == 0)
			r = read_bound(option, *argv, false, &o->max_entries, e);
		else
			r = ward_fail(e, EINVAL, "unknown option %.100s", option);
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
	struct image_options o;
	struct ward_err e = { 0 };

	if (argc < 2) {
		ward_fail(&e, EINVAL, "ward-image is started by ward image");
		return image_error(&e, false, IMAGE_USAGE);
	}
	if (read_options(argv + 2, &o, &e) < 0)
		return image_error(&e, o.json, IMAGE_USAGE);
	for (size_t i = 0; i < ARRAY_LEN(verbs); i++)
		if (strcmp(verbs[i].name, argv[1]) == 0)
			return verbs[i].run(&o);
	ward_fail(&e, EINVAL, "%.100s is none of import, pull, build, ls, rm and gc", argv[1]);
	ward_remedy(&e, "ward image --help explains them");
	return image_error(&e, o.json, IMAGE_USAGE);
}
