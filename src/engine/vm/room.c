/*
 * Whether a machine has room for its trees. In: the mounts of a plan that are copied into the
 * machine. Out: a refusal with its remedy, before anything is started. Trees lie in the machine's
 * memory: one that does not fit would end the copy half-way, or leave the command none. Runs in the
 * supervisor with the user's rights; looks at sizes, opens no file.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "base/path.h"
#include "base/walk.h"
#include "engine/vm/vm.h"

#define PAGE 4096u
/* what a name costs the machine's kernel beside its content */
#define ENTRY_BYTES 2048u
/* of the memory, the machine's kernel and its first process */
#define OWN_BYTES (UINT64_C(72) << 20)

struct room {
	const struct plan *plan;
	const struct plan_mount *tree;
	uint64_t bytes;
};

/* Holes are not copied. */
static uint64_t cost(const struct stat *st)
{
	uint64_t size = (uint64_t)st->st_size, there = (uint64_t)st->st_blocks * 512;

	if (!S_ISREG(st->st_mode))
		return ENTRY_BYTES;
	return ENTRY_BYTES + ((size < there ? size : there) + PAGE - 1) / PAGE * PAGE;
}

/* What is hidden is there, and has no content. */
static bool is_hidden(const struct room *r, const char *path)
{
	for (size_t i = 0; i < r->plan->live->root_count; i++) {
		const struct guard_root *g = &r->plan->live->roots[i];

		if (strcmp(g->target, r->tree->target) != 0)
			continue;
		for (size_t k = 0; k < g->step_count; k++)
			if (g->steps[k].action == GUARD_HIDE && strcmp(g->steps[k].path, path) == 0)
				return true;
	}
	return false;
}

static int count_entry(void *ctx, struct walk_dir *d, const struct walk_entry *entry)
{
	struct room *r = ctx;
	struct stat st;

	if (fstatat(d->fd, entry->name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return 0;
	if ((S_ISDIR(st.st_mode) || cost(&st) > 64 * PAGE) && is_hidden(r, entry->path)) {
		r->bytes += ENTRY_BYTES;
		return 0;
	}
	r->bytes += cost(&st);
	return S_ISDIR(st.st_mode);
}

static int count_tree(struct room *r, const struct plan_mount *m, struct ward_err *e)
{
	static const struct walk_ops ops = { .entry = count_entry };
	auto_fd top = open(m->source, O_PATH | O_CLOEXEC), dir = -1;
	struct stat st;

	if (top < 0 || fstat(top, &st) < 0)
		return 0; /* the copy reports why it fails */
	r->tree = m;
	r->bytes += cost(&st);
	if (!S_ISDIR(st.st_mode))
		return 0;
	dir = openat(top, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return dir < 0 ? 0 : walk_tree(dir, &ops, r, 0, e);
}

int vm_check_room(const struct plan *p, const bool *is_tree, uint64_t memory, struct ward_err *e)
{
	uint64_t room = memory > OWN_BYTES ? memory - OWN_BYTES : 0;
	struct room r = { .plan = p };
	int status = 0;

	for (size_t i = 0; i < p->mount_count && status == 0; i++)
		if (is_tree[i])
			status = count_tree(&r, &p->mounts[i], e);
	if (status < 0 || r.bytes <= room)
		return status;
	ward_fail(e, ENOSPC,
		  "vm.memory: the files for the machine take %llu MiB, but of its %llu MiB of "
		  "memory only %llu are free for them",
		  (unsigned long long)((r.bytes + (1 << 20) - 1) >> 20),
		  (unsigned long long)(memory >> 20), (unsigned long long)(room >> 20));
	return ward_remedy(
		e,
		"give it more memory (--set vm.memory=%lluMi), use a smaller workspace, or hide "
		"what it does not need (filesystem.hide)",
		(unsigned long long)((r.bytes + r.bytes / 4 + OWN_BYTES + (128u << 20)) >> 20));
}
