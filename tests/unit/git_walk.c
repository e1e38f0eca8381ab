/*
 * Walks a git directory and prints what git_judge() says about everything in it that is not simply
 * admitted: "VERDICT\tPATH\tWHY". For tests/unit/git_forms.py. Usage: git-walk DIR [KIND], KIND 0 a
 * repository, 1 a worktree's directory, 2 a submodule's. With
 * --entries FILE HASH it prints an index's entries instead, with --config FILE a configuration's
 * settings.
 */
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/io.h"
#include "rules/git_config.h"
#include "rules/git_index.h"
#include "rules/git_judge.h"

static const char *const verdicts[] = { "ADMIT",   "REPORT", "CONFIRM", "COPY",
					"DERIVED", "DROP",   "REFUSE" };

static const char *root;
static enum git_dir_kind kind;
static unsigned hash = GIT_SHA1;

static void read_file(const char *path, struct buf *b)
{
	auto_fd fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);

	if (fd < 0 || io_read_all(fd, 1u << 30, b) < 0) {
		fprintf(stderr, "cannot read %s\n", path);
		exit(2);
	}
}

static int visit(const char *path, const struct stat *st, int type, struct FTW *at)
{
	const char *inside = path + strlen(root);
	struct git_file f = { .kind = kind,
			      .hash = hash,
			      .mode = st->st_mode,
			      .links = st->st_nlink,
			      .size = (uint64_t)st->st_size };
	struct git_judged j;
	auto_buf bytes = { 0 };

	(void)type;
	(void)at;
	f.path = *inside == '/' ? inside + 1 : inside;
	if (S_ISREG(st->st_mode)) {
		size_t max, needs = git_judge_needs(f.path, f.kind, f.hash, &max);

		read_file(path, &bytes);
		f.bytes = (const uint8_t *)bytes.data;
		f.n = needs < bytes.len ? needs : bytes.len;
	}
	j = git_judge(&f);
	if (j.verdict != GIT_ADMIT)
		printf("%s\t%s\t%s\n", verdicts[j.verdict], f.path, j.why);
	return 0;
}

static int show_entry(void *ctx, const struct git_index_entry *entry)
{
	(void)ctx;
	printf("%06o ", entry->mode);
	for (unsigned i = 0; i < hash; i++)
		printf("%02x", entry->id[i]);
	printf(" %u\t%s\n", entry->stage, entry->path);
	return 0;
}

static int show_setting(void *ctx, const struct gitconfig_entry *entry)
{
	(void)ctx;
	printf("%s%s%s.%s\n%s%c", entry->section, *entry->subsection ? "." : "", entry->subsection,
	       entry->key, entry->value, '\0');
	return 0;
}

int main(int argc, char **argv)
{
	auto_buf bytes = { 0 };
	auto_free char *config = NULL;
	struct git_index_info info;
	const char *why = "";
	int status = 0;

	if (argc == 4 && strcmp(argv[1], "--entries") == 0) {
		hash = (unsigned)atoi(argv[3]);
		read_file(argv[2], &bytes);
		status = git_index_read((const uint8_t *)bytes.data, bytes.len, hash, show_entry,
					NULL, &info, &why);
	} else if (argc == 3 && strcmp(argv[1], "--config") == 0) {
		read_file(argv[2], &bytes);
		status = git_config_read(buf_text(&bytes), bytes.len, show_setting, NULL, &why,
					 NULL);
	} else {
		root = argv[1];
		kind = argc > 2 ? (enum git_dir_kind)atoi(argv[2]) : GIT_DIR_MAIN;
		if (asprintf(&config, "%s/config", root) < 0)
			return 2;
		if (access(config, R_OK) == 0) {
			read_file(config, &bytes);
			hash = git_config_hash(buf_text(&bytes), bytes.len);
		}
		status = nftw(root, visit, 32, FTW_PHYS);
	}
	if (status != 0)
		fprintf(stderr, "refused: %s\n", why);
	return status != 0;
}
