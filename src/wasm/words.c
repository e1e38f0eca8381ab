/*
 * The words of ward-wasm. In: argv as ward's planner wrote it (engine/wasm/inner.c), the user's own
 * words behind "--". Out: struct wasm_job, which borrows from it. A pure function; what it does not
 * know is an error.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "wasm/wasm.h"

enum word {
	WORD_RUNTIME,
	WORD_FILE,
	WORD_DIR,
	WORD_DIR_RO,
	WORD_PAGES,
	WORD_FUEL,
	WORD_AOT,
	WORD_AOT_DIGEST,
	WORD_NETWORK,
	WORD_LANDLOCK,
	WORD_FILTER,
	WORD_METERED
};

static const struct {
	const char *name;
	enum word word;
	bool value;
} table[] = {
	{ "--runtime", WORD_RUNTIME, true },  { "--file", WORD_FILE, true },
	{ "--dir", WORD_DIR, true },          { "--dir-ro", WORD_DIR_RO, true },
	{ "--pages", WORD_PAGES, true },      { "--fuel", WORD_FUEL, true },
	{ "--aot", WORD_AOT, true },          { "--aot-digest", WORD_AOT_DIGEST, true },
	{ "--network", WORD_NETWORK, false }, { "--landlock", WORD_LANDLOCK, false },
	{ "--filter", WORD_FILTER, false },   { "--metered", WORD_METERED, false },
};

static const char *read_number(const char *text, uint64_t max, uint64_t *ret)
{
	char *end = NULL;

	errno = 0;
	*ret = strtoull(text, &end, 10);
	return *text < '0' || *text > '9' || *end || errno || *ret > max ? "a number is wrong"
									 : NULL;
}

static const char *add_dir(struct wasm_job *job, const char *path, bool writable)
{
	if (job->dir_count == WASM_DIRS_MAX - 1) /* one more is for "." */
		return "too many directories";
	job->dirs[job->dir_count++] = (struct wasm_dir){ path, path, writable };
	return NULL;
}

static const char *set(struct wasm_job *job, enum word word, const char *value)
{
	const char *wrong = NULL;
	uint64_t n = 0;

	switch (word) {
	case WORD_RUNTIME:
		job->runtime = value;
		break;
	case WORD_FILE:
		job->file = value;
		break;
	case WORD_DIR:
	case WORD_DIR_RO:
		return add_dir(job, value, word == WORD_DIR);
	case WORD_PAGES:
		wrong = read_number(value, 65536, &n);
		job->pages = (uint32_t)n;
		break;
	case WORD_FUEL:
		wrong = read_number(value, UINT64_MAX, &job->fuel);
		break;
	case WORD_AOT:
		job->aot = value;
		break;
	case WORD_AOT_DIGEST:
		job->aot_digest = value;
		break;
	case WORD_NETWORK:
		job->network = true;
		break;
	case WORD_LANDLOCK:
		job->landlock = true;
		break;
	case WORD_FILTER:
		job->filter = true;
		break;
	case WORD_METERED:
		job->metered = true;
		break;
	}
	return wrong;
}

static bool is_beneath(const char *path, const char *dir)
{
	size_t n = strlen(dir);

	return strncmp(path, dir, n) == 0 && (path[n] == '/' || !path[n]);
}

const char *wasm_add_cwd(struct wasm_job *job, const char *path)
{
	const struct wasm_dir *in = NULL;
	struct wasm_dir here;

	for (size_t i = 0; i < job->dir_count; i++) {
		const struct wasm_dir *d = &job->dirs[i];

		if (strchr(d->path, ':'))
			return "a directory with a colon in its path cannot be given to a module";
		if (is_beneath(path, d->path) && (!in || strlen(d->path) > strlen(in->path)))
			in = d;
	}
	if (!in)
		return NULL;
	/* not by its path: that may be another directory by now */
	here = (struct wasm_dir){ ".", ".", in->writable };
	memmove(job->dirs + 1, job->dirs, job->dir_count * sizeof(*job->dirs));
	job->dirs[0] = here;
	job->dir_count++;
	return NULL;
}

const char *wasm_words(int argc, char **argv, struct wasm_job *ret_job)
{
	*ret_job = (struct wasm_job){ 0 };
	for (int i = 0; i < argc; i++) {
		const char *wrong = "an unknown word";

		if (strcmp(argv[i], "--") == 0) {
			ret_job->words = argv + i + 1;
			break;
		}
		for (size_t k = 0; k < sizeof(table) / sizeof(*table); k++) {
			if (strcmp(argv[i], table[k].name) != 0)
				continue;
			if (table[k].value && i + 1 == argc)
				return "a value is missing";
			i += table[k].value;
			wrong = set(ret_job, table[k].word, argv[i]);
			break;
		}
		if (wrong)
			return wrong;
	}
	if (!ret_job->runtime || !ret_job->file)
		return "no runtime is named";
	if (!ret_job->aot != !ret_job->aot_digest)
		return "compiled code goes with a digest";
	return NULL;
}
