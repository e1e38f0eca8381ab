/*
 * Checkpoints behind gVisor: what they depend on, and the words that make one and go on from one
 * (src/gvisor/checkpoint.c). In: a plan. Out: lines and words of it. Runs in the supervisor.
 * gVisor's kernel is kept by itself; the private directories of the sandbox are file systems of the
 * host's kernel and go beside it. What belongs to others (the workspace, mounts, volumes) is not in
 * a checkpoint: programs find it again as it is then, by its names.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

#include "base/path.h"
#include "engine/gvisor/gvisor.h"
#include "plan/plan_root.h"
#include "state/checkpoint.h"

#define TREES_MAX 32

static bool is_private(const struct plan_mount *m)
{
	/* gVisor has its own */
	static const char *const others[] = { "/.ward", "/dev", "/proc", "/sys" };

	if (m->kind != MOUNT_TMPFS || !m->writable)
		return false;
	for (size_t i = 0; i < ARRAY_LEN(others); i++)
		if (path_is_beneath(m->target, others[i]))
			return false;
	return true;
}

bool gvisor_shares_shm(const struct plan *p)
{
	return p->limits[LIMIT_INODES].value != POLICY_NONE;
}

/* Outer ones before those in them, as they are mounted. */
static size_t add_trees(const struct plan *p, struct strv *words)
{
	size_t count = 0;

	for (size_t i = 0; i < p->mount_count && count < TREES_MAX; i++)
		if (is_private(&p->mounts[i])) {
			strv_add(words, p->mounts[i].target);
			count++;
		}
	if (gvisor_shares_shm(p)) {
		strv_add(words, "/dev/shm");
		count++;
	}
	return count;
}

void gvisor_add_same(struct plan *p, const struct gvisor_runtime *r, const char *platform)
{
	struct stat st;

	if (!r->known || stat(r->path, &st) < 0)
		return;
	strv_addf(&p->inner_same, "runsc: %u of %" PRIu64 " bytes", r->date, (uint64_t)st.st_size);
	strv_addf(&p->inner_same, "platform: %s", platform);
	strv_addf(&p->inner_same, "shm: %s", gvisor_shares_shm(p) ? "the sandbox's" : "gVisor's");
}

int gvisor_snapshot(const struct plan *p, struct strv *words, struct ward_err *e)
{
	if (!p->inner_same.len) {
		ward_fail(e, ENOTSUP, "checkpoints: ward does not support this version of runsc");
		return ward_remedy(e, "use the runsc from Debian's bookworm-backports (20240729)");
	}
	strv_add(words, "/.ward/ward-gvisor");
	strv_add(words, "checkpoint");
	add_trees(p, words);
	strv_add(words, "--");
	return 0;
}

/* from_policy: it is mounted by number, and as root before the rights are gone. */
int gvisor_add_image(struct plan *p, struct ward_err *e)
{
	const char *source = p->spec->restore->path;
	struct plan_mount *m = plan_add_bind(p, source, CHECKPOINT_IMAGE);
	struct stat st;

	if (!m)
		return ward_fail(e, ENOMEM, "out of memory");
	if (lstat(source, &st) < 0 || !S_ISREG(st.st_mode))
		return ward_fail(e, ENOENT, "the checkpoint %s is gone", p->spec->restore->name);
	m->is_file = m->from_policy = true;
	m->dev = st.st_dev;
	m->ino = st.st_ino;
	return 0;
}

void gvisor_add_restore(const struct plan *p, struct strv *words)
{
	auto_strv trees = { 0 };
	size_t count = add_trees(p, &trees);

	strv_addf(words, "%zu", count);
	for (size_t i = 0; i < trees.len; i++)
		strv_add(words, trees.items[i]);
	words->failed |= trees.failed;
}
