/* Compiling a plan, and what is asked of one. */
#ifndef WARD_PLAN_PLAN_H
#define WARD_PLAN_PLAN_H

#include "model/inner.h"
#include "model/plan.h"

/* Reads tables/root.def against the host, and keeps the facts with it. The caller frees with
 * plan_system_free(). */
must_check int plan_system_read(const struct facts *facts, struct plan_system **ret_system,
				struct ward_err *e);
/* The same without anything of the host's: for an image. */
must_check int plan_system_bare(const struct facts *facts, struct plan_system **ret_system,
				struct ward_err *e);
void plan_system_free(struct plan_system *system);
/* The sandbox has started: what was read of /etc is kept for the next ones, where it was not. */
void plan_system_keep(const struct plan_system *system);
/* Whether the path is in a kept /etc. */
bool plan_keeps_etc(const struct plan_system *system, const char *path);
/* The directories in /etc that tables/root.def looks into, relative to it. */
void plan_etc_parents(struct strv *dirs);

/* Whom the agent is on the host unless a policy or file system has it otherwise. */
void plan_expected_ids(const struct facts *f, struct plan_ids *ret_ids);

/* Compiles the plan; *ret_plan is the caller's until plan_free(). system is borrowed for as long
 * (NULL: read here). Nothing on the host is changed but for the volumes of a spec that starts,
 * which are made. */
must_check int plan_compile(const struct spec *s, const struct plan_system *system,
			    struct plan **ret_plan, struct ward_err *e);
/* The sandbox is built: what only that needed goes. */
void plan_built(const struct plan *p);
/* The run is over: its volumes and its image are in use no longer. */
void plan_release(struct plan *p);
/* The same, and what the kernel does not do when this process ends: no process that worked for it
 * is left behind, and no recording that stayed empty. */
void plan_end(struct plan *p);
void plan_free(struct plan *p);
/* The plan as text or JSON, with the stages of its engine ("name" and "help" pairs,
 * NULL-terminated). */
void plan_print(const struct plan *p, const char *const *stages, bool json, struct buf *out);

/* The steps by which plan_compile() makes a plan, as text. */
/* The same in a dozen lines: what the run may do, and what is weaker than the defaults. */
void plan_print_brief(const struct plan *p, struct buf *out);
void plan_print_steps(struct buf *out);

/* The words that ward-init starts. */
char *const *plan_started(const struct plan *p);

#endif
