/*
 * The worker locks itself up before it reads the first byte of an image: the rows UNPACK and
 * UNPACK_DIR of tables/procs.def. In: the job. Out: a process that can read its source and write
 * beneath its target, and nothing else. What must hold and fails ends the work.
 */
#include <sys/stat.h>

#include "confine/confine.h"
#include "image/unpack.h"

int confine_worker(const struct unpack_job *job, struct ward_err *e)
{
	const struct confine_tree trees[] = {
		{ .fd = job->target_fd, .rights = CONFINE_WRITE },
		{ .fd = job->source_fd, .rights = CONFINE_READ },
	};
	const struct confine_own own = { .trees = trees, .tree_count = job->is_dir ? 2 : 1 };

	umask(022);
	return confine_enter(job->is_dir ? PROC_UNPACK_DIR : PROC_UNPACK, &own, e);
}
