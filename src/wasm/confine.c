/*
 * ward-wasm locks itself up before it reads the module. In: the module's directories. Out: a
 * process that has, of what the sandbox has, those directories and no more (Landlock) and, where
 * the runtime is a library in this process, a list of system calls in which nothing executes,
 * forks, signals or, without a network, opens a socket: the rows WASM* of tables/procs.def. The
 * sandbox around it holds without this: it is for a module that fools its runtime, by a link or by
 * a bug. The plan says which of both there are (engine/wasm/inner.c): a kernel without Landlock
 * lacks the first, a sandbox whose own filter lets no program narrow itself (process.syscalls:
 * strict) the second, and the result says so. What the plan names is in force, or the module does
 * not run.
 */
#include "confine/confine.h"
#include "wasm/wasm.h"

int confine(const struct wasm_job *job, bool strict)
{
	const enum proc p = strict         ? job->network ? PROC_WASM_NET : PROC_WASM
			    : job->network ? PROC_WASM_RUNTIME_NET
					   : PROC_WASM_RUNTIME;
	struct confine_tree trees[WASM_DIRS_MAX + 2];
	struct confine_own own = { .trees = trees,
				   .no_landlock = !job->landlock,
				   .no_filter = !job->filter };
	struct ward_err e;

	for (size_t i = 0; i < job->dir_count; i++)
		trees[own.tree_count++] =
			(struct confine_tree){ .path = job->dirs[i].path,
					       .rights = job->dirs[i].writable ? CONFINE_WRITE
									       : CONFINE_READ };
	if (job->aot)
		trees[own.tree_count++] =
			(struct confine_tree){ .path = job->aot,
					       .rights = CONFINE_READ | CONFINE_EXEC };
	if (!strict)
		trees[own.tree_count++] =
			(struct confine_tree){ .path = job->file,
					       .rights = CONFINE_READ | CONFINE_EXEC };
	return confine_enter(p, &own, &e) < 0 ? say(EXIT_OWN, NULL, "%s", e.why) : 0;
}
