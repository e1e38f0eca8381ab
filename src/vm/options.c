/*
 * The words of ward-vm, which ward itself writes (engine/vm/plan.c): a table. In: argv. Out:
 * struct vm_options.
 */
#include "vm/options.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

enum kind { TEXT, NUMBER, FLAG, TREE };

static const struct {
	const char *name;
	enum kind kind;
	size_t at;
} rows[] = {
#define ROW(name, kind, member)                                                                    \
	{                                                                                          \
		name, kind, offsetof(struct vm_options, member)                                    \
	}
	ROW("--program", TEXT, config.program),
	ROW("--accel", TEXT, config.accel),
	ROW("--memory", NUMBER, config.memory_bytes),
	ROW("--kernel", TEXT, config.kernel),
	ROW("--initrd", TEXT, config.initrd),
	ROW("--words", TEXT, config.words),
	ROW("--root", TEXT, config.root),
	ROW("--disk", TEXT, config.disk),
	ROW("--ram", TEXT, config.ram),
	ROW("--state", TEXT, config.state),
	ROW("--shim", TEXT, config.shim),
	ROW("--console", TEXT, config.console),
	ROW("--network", FLAG, config.network),
	ROW("--tree", TREE, trees),
	ROW("--uid", NUMBER, uid),
	ROW("--gid", NUMBER, gid),
	ROW("--pids", NUMBER, pids),
	ROW("--open-files", NUMBER, open_files),
	ROW("--socket", TEXT, socket),
	ROW("--out", TEXT, out),
#undef ROW
};

static int read_number(const char *name, const char *value, uint64_t *ret, struct ward_err *e)
{
	char *end = NULL;

	errno = 0;
	*ret = strtoull(value, &end, 10);
	if (errno || *value < '0' || *value > '9' || *end)
		return ward_fail(e, EINVAL, "%s %.60s: expected a number", name, value);
	return 0;
}

static int set(struct vm_options *o, size_t row, const char *value, struct ward_err *e)
{
	char *at = (char *)o + rows[row].at;

	switch (rows[row].kind) {
	case TEXT:
		memcpy(at, &value, sizeof(value));
		return 0;
	case NUMBER:
		return read_number(rows[row].name, value, (uint64_t *)(void *)at, e);
	case TREE:
		if (o->tree_count == VM_TREES_MAX ||
		    (strncmp(value, "in:/", 4) != 0 && strncmp(value, "rw:/", 4) != 0))
			return ward_fail(e, EINVAL,
					 "--tree %.100s: expected in: or rw: and an absolute path, "
					 "at most %d of them",
					 value, VM_TREES_MAX);
		o->trees[o->tree_count++] = value;
		return 0;
	case FLAG:
		*(bool *)at = true;
		return 0;
	}
	return -EINVAL;
}

static int find(const char *name, struct ward_err *e)
{
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		if (strcmp(rows[i].name, name) == 0)
			return (int)i;
	return ward_fail(e, EINVAL, "unknown option %.100s", name);
}

int vm_options_read(int argc, char **argv, struct vm_options *ret, struct ward_err *e)
{
	uint64_t cpus = 1;
	int i = 0;

	*ret = (struct vm_options){ .config = { .accel = "kvm" }, .uid = 1000, .gid = 1000 };
	for (; i < argc && strcmp(argv[i], "--") != 0; i++) {
		bool is_cpus = strcmp(argv[i], "--cpus") == 0;
		int row = is_cpus ? 0 : find(argv[i], e), r;
		const char *value = i + 1 < argc ? argv[i + 1] : NULL;

		if (row < 0)
			return row;
		if (!is_cpus && rows[row].kind == FLAG)
			value = "";
		else if (!value)
			return ward_fail(e, EINVAL, "%s needs a value", argv[i]);
		else
			i++;
		r = is_cpus ? read_number("--cpus", value, &cpus, e)
			    : set(ret, (size_t)row, value, e);
		if (r < 0)
			return r;
	}
	ret->config.cpus = cpus >= 1 && cpus <= 64 ? (unsigned)cpus : 1;
	ret->words = argv + (i < argc ? i + 1 : argc);
	ret->word_count = i < argc ? argc - i - 1 : 0;
	if (!ret->config.program || !ret->config.memory_bytes)
		return ward_fail(e, EINVAL, "--program and --memory are needed");
	return 0;
}
