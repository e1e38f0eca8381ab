/*
 * gVisor as an inner runtime. In: a spec that picked it, then its plan. Out: what the native
 * sandbox around it must have, and the words that ward-init starts. Runs in the supervisor as the
 * user.
 *
 * Around runsc stands a native sandbox that is wider than others in one way: it may make user
 * namespaces and mounts, and trace its children (process.nesting, the set `build`), because runsc
 * builds its own jails with them. None of that is the command's: it speaks to gVisor's kernel
 * alone. Three more things are in that sandbox: a tmpfs for runsc's state, a small one for what the
 * command's side tells, and a read-only /proc on which nothing is masked, without which the kernel
 * would let runsc mount none. Only the small one is in the tree that gVisor's gofer serves.
 */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "base/path.h"
#include "base/text.h"
#include "engine/gvisor/gvisor.h"
#include "host/program.h"
#include "limit/limits.h"
#include "plan/plan_root.h"

#define OWN_BYTES (64ULL * 1024 * 1024)
#define OWN_INODES 4096
#define IO_BYTES (1024ULL * 1024)
#define IO_INODES 512
#define DIRS_MAX 60

static int probe(struct ward_err *e)
{
	struct gvisor_runtime r;

	return gvisor_find(&r, e);
}

/* Rows of platforms[]. */
enum platform { SYSTRAP, PTRACE, KVM };

/* The best that there is here. *why: what speaks against KVM. */
static enum platform choose(const struct gvisor_runtime *r, struct ward_err *why)
{
	if (gvisor_probe_kvm(r, why) == 0)
		return KVM;
	return gvisor_has_systrap(r) ? SYSTRAP : PTRACE;
}

static void about(struct buf *out)
{
	static const char *const texts[] = { [SYSTRAP] = "systrap",
					     [PTRACE] =
						     "ptrace (Debian 12's ls and stat fail in it: "
						     "use the runsc from bookworm-backports)",
					     [KVM] = "kvm" };
	struct ward_err ignored = { 0 }, why = { 0 };
	struct gvisor_runtime r;
	enum platform p;

	if (gvisor_find(&r, &ignored) < 0)
		return;
	p = choose(&r, &why);
	buf_printf(out, "%s of %u, platform %s", r.path, r.date, texts[p]);
	if (p != KVM)
		buf_printf(out, "; not kvm: %s", why.why);
	if (r.known)
		buf_puts(out, "; supports checkpoints of sandboxes without a network");
}

static int want(struct spec *s, struct ward_err *e);
static int mounts(struct plan *p, struct ward_err *e);
static int words(struct plan *p, struct ward_err *e);

static const char *const stages[] = {
	"wall",  "a user namespace, the tree for gVisor's gofer, an OCI bundle",
	"runsc", "gVisor's kernel and gofer, each in a jail of its own",
	"enter", "the agent's id in gVisor's kernel, no capability, then the command",
	NULL,
};

static const char *const idle[] = { "/.ward/ward-gvisor", "idle", NULL };

static const struct inner platforms[] = {
	[SYSTRAP] = { .name = "gvisor",
		      .help = "gVisor's kernel (runsc), platform systrap",
		      .probe = probe,
		      .want = want,
		      .mounts = mounts,
		      .words = words,
		      .about = about,
		      .snapshot = gvisor_snapshot,
		      .memory_files = true,
		      .holds = true,
		      .counts = true,
		      .interfaces = true,
		      .stages = stages,
		      .idle = idle,
		      .own_view = true },
	[PTRACE] = { .name = "gvisor",
		     .help = "gVisor's kernel (runsc), platform ptrace",
		     .probe = probe,
		     .want = want,
		     .mounts = mounts,
		     .words = words,
		     .about = about,
		     .snapshot = gvisor_snapshot,
		     .memory_files = true,
		     .holds = true,
		     .counts = true,
		     .interfaces = true,
		     .stages = stages,
		     .idle = idle,
		     .own_view = true },
	[KVM] = { .name = "gvisor",
		  .help = "gVisor's kernel (runsc), platform kvm",
		  .probe = probe,
		  .want = want,
		  .mounts = mounts,
		  .words = words,
		  .about = about,
		  .snapshot = gvisor_snapshot,
		  .memory_files = true,
		  .holds = true,
		  .counts = true,
		  .kvm = INNER_KVM_SENTRY,
		  .interfaces = true,
		  .stages = stages,
		  .idle = idle,
		  .own_view = true },
};

const struct inner inner_gvisor = { .name = "gvisor",
				    .help = "gVisor's kernel (runsc)",
				    .probe = probe,
				    .want = want,
				    .mounts = mounts,
				    .words = words,
				    .about = about,
				    .snapshot = gvisor_snapshot,
				    .memory_files = true,
				    .holds = true,
				    .counts = true,
				    .interfaces = true,
				    .stages = stages,
				    .idle = idle,
				    .own_view = true };

/* The platform that the policy asks for, or why it cannot be had. */
static int pick(unsigned asked, const struct gvisor_runtime *r, enum platform *ret,
		struct ward_err *e)
{
	struct ward_err why = { 0 };

	if (asked == GVISOR_SYSTRAP && !gvisor_has_systrap(r)) {
		ward_fail(e, ENOTSUP, "gvisor.platform: %s of %u does not support systrap", r->path,
			  r->date);
		return ward_remedy(e, "use gvisor.platform: auto, or a runsc of 2023 or later");
	}
	if (asked == GVISOR_KVM && gvisor_probe_kvm(r, &why) < 0) {
		ward_fail(e, why.code, "gvisor.platform: kvm: %s", why.why);
		return ward_remedy(e,
				   "%s%suse gvisor.platform: auto, which chooses what works here",
				   why.remedy, why.remedy[0] ? "; or " : "");
	}
	*ret = asked == GVISOR_KVM       ? KVM
	       : asked == GVISOR_SYSTRAP ? SYSTRAP
	       : asked == GVISOR_PTRACE  ? PTRACE
					 : choose(r, &why);
	return 0;
}

static int want(struct spec *s, struct ward_err *e)
{
	struct gvisor_runtime r;
	enum platform p = SYSTRAP;
	int err = gvisor_find(&r, e);

	if (err == 0)
		err = pick(s->policy.gvisor_platform, &r, &p, e);
	if (err < 0)
		return err;
	if (s->policy.res_gpus.len) {
		ward_fail(e, ENOTSUP, "resources.gpus: gVisor does not pass GPUs through");
		return ward_remedy(e, "use isolation: native");
	}
	s->inner = &platforms[p];
	if (s->policy.proc_syscalls == SYSCALLS_STRICT)
		strv_add(&s->notes,
			 "process.syscalls: strict is not in force: gVisor's kernel filters the "
			 "command's calls, and runsc needs the set build in the sandbox around it");
	s->policy.proc_nesting = true;
	s->policy.proc_syscalls = SYSCALLS_BUILD;
	return 0;
}

/* Where ward's own program for this inner runtime lies. */
static int find_runner(char path[PATH_MAX], struct ward_err *e)
{
	auto_fd fd = program_open("ward-gvisor", e);
	char link[64];
	ssize_t n;

	if (fd < 0)
		return fd;
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = readlink(link, path, PATH_MAX - 1);
	if (n <= 0)
		return ward_fail_errno(e, "cannot find ward-gvisor");
	path[n] = '\0';
	return 0;
}

static int add_file(struct plan *p, const char *source, const char *target, struct ward_err *e)
{
	struct plan_mount *m = plan_add_bind(p, source, target);

	if (!m)
		return ward_fail(e, ENOMEM, "out of memory");
	m->is_file = true;
	return 0;
}

static int add_tmpfs(struct plan *p, const char *target, uint64_t bytes, uint64_t inodes,
		     struct ward_err *e)
{
	struct plan_mount *m = plan_add_tmpfs(p, target, 0700);

	if (!m)
		return ward_fail(e, ENOMEM, "out of memory");
	m->bytes = bytes;
	m->inodes = inodes;
	return 0;
}

static int mounts(struct plan *p, struct ward_err *e)
{
	struct gvisor_runtime r;
	char runner[PATH_MAX];
	int err = gvisor_find(&r, e);

	if (err == 0)
		err = find_runner(runner, e);
	if (err == 0)
		err = add_file(p, runner, "/.ward/ward-gvisor", e);
	if (err == 0)
		err = add_file(p, r.path, "/.ward/runsc", e);
	if (err == 0)
		err = add_tmpfs(p, "/.ward/gvisor", OWN_BYTES, OWN_INODES, e);
	if (err == 0)
		err = add_tmpfs(p, "/.ward/io", IO_BYTES, IO_INODES, e);
	if (err == 0 && p->spec->restore)
		err = gvisor_add_image(p, e);
	if (err < 0)
		return err;
	strv_add(&p->notes, "masked proc: runsc has another, unmasked /proc in /.ward/proc, which "
			    "the command does not see");
	return plan_add_proc(p, "/.ward/proc") < 0 ? ward_fail(e, ENOMEM, "out of memory") : 0;
}

/* Whether others may change what is in it while the sandbox runs: gVisor must look again each
 * time. */
static bool is_shared(const struct plan_mount *m)
{
	if (path_is_beneath(m->target, "/.ward"))
		return false;
	return (m->kind == MOUNT_BIND && m->from_policy && !m->is_file) ||
	       (m->kind == MOUNT_TMPFS && m->writable);
}

static int list_shared(const struct plan *p, struct strv *dirs, struct ward_err *e)
{
	for (size_t i = 0; i < p->mount_count; i++) {
		bool inner = false;

		if (!is_shared(&p->mounts[i]))
			continue;
		for (size_t k = 0; k < p->mount_count && !inner; k++)
			inner = k != i && is_shared(&p->mounts[k]) &&
				strcmp(p->mounts[k].target, p->mounts[i].target) != 0 &&
				path_is_beneath(p->mounts[i].target, p->mounts[k].target);
		if (inner || strv_has(dirs, p->mounts[i].target))
			continue;
		if (!text_is_utf8(p->mounts[i].target))
			return ward_fail(e, EINVAL, "%s: gVisor accepts only UTF-8 paths",
					 p->mounts[i].target);
		strv_add(dirs, p->mounts[i].target);
	}
	if (dirs->len > DIRS_MAX) {
		ward_fail(e, E2BIG, "gVisor: the policy shares more than %d directories", DIRS_MAX);
		return ward_remedy(e, "mount a directory above them, or use isolation: native");
	}
	return 0;
}

/* What gVisor's kernel and gofer take before a command has anything, as root and as a user: 16 MiB
 * were too little now and then, 44 threads or (where runsc starts them) 48 and 260 descriptors just
 * enough, for the kernel keeps the command's 0-2 behind number 256. With less they end in the
 * middle of their start and leave a stack of Go's. */
static const struct {
	enum limit limit;
	uint64_t least;
	const char *field, *unit, *remedy;
} least[] = {
	{ LIMIT_MEMORY, 32ULL << 20, "resources.memory_limit", " bytes of memory (32 MiB)",
	  "--memory 32Mi or more" },
	{ LIMIT_PIDS, 64, "resources.pids_limit", " processes and threads", "--pids 64 or more" },
	{ LIMIT_OPEN_FILES, 320, "resources.open_files", " open files",
	  "--set resources.open_files=320 or more" },
};

static int check_least(const struct plan *p, struct ward_err *e)
{
	for (size_t i = 0; i < ARRAY_LEN(least); i++) {
		uint64_t value = p->limits[least[i].limit].value;

		if (value == POLICY_NONE || value >= least[i].least)
			continue;
		ward_fail(e, EINVAL,
			  "%s: %" PRIu64
			  " is too low for isolation: gvisor, whose own processes need %" PRIu64
			  "%s to start",
			  least[i].field, value, least[i].least, least[i].unit);
		return ward_remedy(e, "%s; or use isolation: native, which needs none of its own",
				   least[i].remedy);
	}
	return 0;
}

/* The limit that ward itself was started with counts for everything inside, too. */
static int check_files(struct ward_err *e)
{
	const uint64_t needed = least[ARRAY_LEN(least) - 1].least;
	struct rlimit own;

	if (getrlimit(RLIMIT_NOFILE, &own) < 0 || own.rlim_max >= needed)
		return 0;
	ward_fail(e, EINVAL,
		  "the hard limit of open files is %" PRIu64
		  " here (ulimit -Hn), which is too low for isolation: gvisor, whose own processes "
		  "need %" PRIu64 " to start",
		  (uint64_t)own.rlim_max, needed);
	return ward_remedy(e, "raise the limit before starting ward; or use isolation: native, "
			      "which needs none of its own");
}

/* Without a cgroup gVisor's kernel holds its programs whenever they have used too much: one call of
 * it, or a start of runsc. */
static int check_cpu(const struct plan *p, const struct gvisor_runtime *r, struct ward_err *e)
{
	const struct plan_limit *cpu = &p->limits[LIMIT_CPU];

	if (r->known || cpu->value == POLICY_NONE || cpu->held_by != HELD_WATCH)
		return 0;
	ward_fail(e, ENOTSUP,
		  "resources.cpu_limit: there is no cgroup to enforce it, and ward cannot throttle "
		  "the processes of %s of %u",
		  r->path, r->date);
	return ward_remedy(e,
			   "use the runsc from bookworm-backports directly, not through a script; "
			   "or a cgroup (ward doctor shows how); or resources.cpu_limit: none");
}

static int words(struct plan *p, struct ward_err *e)
{
	static const char *const names[] = {
		[SYSTRAP] = "systrap", [PTRACE] = "ptrace", [KVM] = "kvm"
	};
	struct gvisor_runtime runtime = { 0 };
	auto_strv dirs = { 0 };
	int r = check_least(p, e);

	if (r == 0)
		r = check_files(e);
	if (r == 0)
		r = list_shared(p, &dirs, e);
	if (r == 0)
		r = gvisor_find(&runtime, e);
	if (r == 0)
		r = check_cpu(p, &runtime, e);
	if (r < 0)
		return r;
	strv_add(&p->inner_run, "/.ward/ward-gvisor");
	gvisor_add_same(p, &runtime, names[p->spec->inner - platforms]);
	strv_add(&p->inner_run, p->spec->restore ? "restore" : "run");
	if (p->spec->restore)
		gvisor_add_restore(p, &p->inner_run);
	strv_add(&p->inner_run, names[p->spec->inner - platforms]);
	/* what is hidden or protected is a mount point, and the kernel keeps that from being
	 * removed only in a mount namespace that has it: the gofer's, not the sentry's, which later
	 * versions would let do it directly */
	strv_add(&p->inner_run,
		 gvisor_has_systrap(&runtime) ? "--directfs=false" : "--network=host");
	strv_add(&p->inner_run, !runtime.known ? "whole" : p->net.on ? "direct" : "alone");
	strv_addf(&p->inner_run, "%" PRIu64, limits_file_bytes(p));
	strv_addf(&p->inner_run, "%" PRIu64, gvisor_shares_shm(p) ? 0 : plan_private_bytes(p));
	strv_addf(&p->inner_run, "%" PRIu64,
		  p->limits[LIMIT_PIDS].value == POLICY_NONE ? 0 : p->limits[LIMIT_PIDS].value);
	strv_addf(&p->inner_run, "%zu", dirs.len);
	for (size_t i = 0; i < dirs.len; i++)
		strv_add(&p->inner_run, dirs.items[i]);
	strv_add(&p->inner_exec, "/.ward/ward-gvisor");
	strv_add(&p->inner_exec, "exec");
	return dirs.failed ? ward_fail(e, ENOMEM, "out of memory") : 0;
}
