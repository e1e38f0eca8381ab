/*
 * From the plan to what the child reads. In: a const plan. Out: the second part of the child's
 * memory: options, paths, the filter, argv. Runs in the supervisor while the child builds its root.
 */
#include <errno.h>
#include <string.h>

#include "engine/native/native.h"
#include "engine/native/net_batch.h"
#include "engine/native/seccomp.h"
#include "observe/observe.h"
#include "plan/plan_root.h"
#include "plan/inner.h"
#include "plan/plan.h"
#include "start_tricks.h"

static char *tmpfs_options(struct strv *texts, const struct plan_ids *ids, unsigned mode,
			   uint64_t bytes, uint64_t inodes)
{
	auto_buf text = { 0 };

	buf_printf(&text, "mode=%04o,uid=%u,gid=%u", mode, ids->inside_uid, ids->inside_gid);
	if (bytes)
		buf_printf(&text, ",size=%llu", (unsigned long long)bytes);
	if (inodes)
		buf_printf(&text, ",nr_inodes=%llu", (unsigned long long)inodes);
	strv_take(texts, buf_take(&text));
	return texts->failed ? NULL : texts->items[texts->len - 1];
}

/* The private directories are parts of the root's own file system, where that is ward's alone: one
 * limit holds for all of them together. */
static void prepare_private(struct native_child *c, const struct plan *p)
{
	uint64_t inodes = p->limits[LIMIT_INODES].value;

	if (!TRICK_ONE_TMPFS || c->bundle || p->spec->inner || p->system->image)
		return;
	c->private_bytes = plan_private_bytes(p);
	/* without a limit what a tmpfs would have */
	c->private_inodes = inodes == POLICY_NONE ? p->facts.memory_bytes / 2 / 4096 : inodes;
}

static int prepare_mounts(struct native_memory *m, const struct plan *p, struct ward_err *e)
{
	uint64_t shm_bytes = 0, shm_inodes = 0;
	struct native_child *c = &m->child;

	prepare_private(c, p);
	m->options = calloc(p->mount_count + 1, sizeof(*m->options));
	if (!m->options)
		return ward_fail(e, ENOMEM, "out of memory");
	c->tmpfs_options = m->options;
	for (size_t i = 0; i < p->mount_count; i++) {
		const struct plan_mount *pm = &p->mounts[i];

		if (pm->tree_fd >= 0 && ++c->tree_count > NATIVE_TREES_MAX)
			return ward_fail(e, E2BIG, "too many mounts of the policy: at most %d",
					 NATIVE_TREES_MAX);
		if (pm->kind != MOUNT_TMPFS)
			continue;
		if (!c->private_bytes)
			m->options[i] =
				tmpfs_options(&m->texts, &c->ids, pm->mode, pm->bytes, pm->inodes);
		shm_bytes = pm->bytes;
		shm_inodes = pm->inodes;
	}
	for (size_t i = 0; p->devices && i < p->devices->len; i++)
		if (p->devices->items[i].tree_fd >= 0 && ++c->tree_count > NATIVE_TREES_MAX)
			return ward_fail(e, E2BIG,
					 "too many mounts and devices of the policy: at most %d",
					 NATIVE_TREES_MAX);
	if (!c->private_bytes)
		c->shm_options = tmpfs_options(&m->texts, &c->ids, 01777, shm_bytes, shm_inodes);
	return m->texts.failed ? ward_fail(e, ENOMEM, "out of memory") : 0;
}

static void add_landlock_path(struct native_child *c, const char *path, unsigned rights)
{
	if (c->path_count < NATIVE_PATHS_MAX)
		c->paths[c->path_count++] =
			(struct landlock_path){ .path = path, .rights = rights };
}

/* Behind the mounts: everything in view may be read and executed, what is writable there may be
 * written. */
static int prepare_landlock(struct native_child *c, const struct plan *p, struct ward_err *e)
{
	/* under an allow list only its files may be executed, and the loader's stand-in */
	const struct plan_commands *list = p->commands && p->commands->listed ? p->commands : NULL;
	unsigned full = list ? LANDLOCK_FULL & ~(unsigned)LANDLOCK_EXECUTE : LANDLOCK_FULL;
	size_t writable = 0, extra = list ? list->files.len + 2 : 0;

	add_landlock_path(c, "/", LANDLOCK_READ | (list ? 0U : LANDLOCK_EXECUTE));
	if (list)
		add_landlock_path(c, "/" NATIVE_INIT, LANDLOCK_READ | LANDLOCK_EXECUTE);
	if (list && list->loader)
		add_landlock_path(c, list->loader, LANDLOCK_READ | LANDLOCK_EXECUTE);
	for (size_t i = 0; list && i < list->files.len; i++)
		add_landlock_path(c, list->files.items[i], LANDLOCK_READ | LANDLOCK_EXECUTE);
	for (size_t i = 0; list && i < list->guarded_count; i++)
		for (size_t k = 0; k < list->guarded[i].names.len; k++, extra++)
			add_landlock_path(c, list->guarded[i].names.items[k],
					  LANDLOCK_READ | LANDLOCK_EXECUTE);
	if (list && p->proposals) {
		add_landlock_path(c, "/" NATIVE_ASK, LANDLOCK_READ | LANDLOCK_EXECUTE);
		extra++;
	}
	if (list && plan_has_client(p)) {
		add_landlock_path(c, "/" NATIVE_CLIENT, LANDLOCK_READ | LANDLOCK_EXECUTE);
		extra++;
	}
	add_landlock_path(c, "/proc", LANDLOCK_READ | LANDLOCK_MODIFY);
	add_landlock_path(c, "/dev", LANDLOCK_READ | LANDLOCK_MODIFY | LANDLOCK_DEVICE);
	add_landlock_path(c, "/dev/shm", full);
	/* the caller's too, as /dev/stdin */
	add_landlock_path(c, "/dev/null", LANDLOCK_READ | LANDLOCK_MODIFY);
	for (size_t i = 0; i < p->mount_count; i++)
		if (p->mounts[i].writable) {
			writable++;
			add_landlock_path(c, p->mounts[i].target, full);
		}
	if (writable + extra + 5 > NATIVE_PATHS_MAX)
		return ward_fail(e, E2BIG, "too many writable mounts: at most %zu",
				 NATIVE_PATHS_MAX - 5 - extra);
	return 0;
}

static int prepare_filter(struct native_child *c, const struct plan *p, struct ward_err *e)
{
	static const unsigned kvm_flags[] = {
		[INNER_KVM_MACHINE] = SECCOMP_KVM, [INNER_KVM_SENTRY] = SECCOMP_KVM_SENTRY
	};
	bool memory_files = p->spec->inner && p->spec->inner->memory_files;
	unsigned flags =
		(p->spec->policy.proc_nesting ? SECCOMP_NESTING : 0) |
		((p->limits[LIMIT_MEMORY].held_by == HELD_WATCH && !memory_files) ||
				 (p->commands && p->commands->listed) /* Landlock sees no memfd */
			 ? SECCOMP_CLOSE_MEMORY
			 : 0) |
		(p->gpus ? SECCOMP_GPUS : 0) |
		(p->limits[LIMIT_DISK].held_by == HELD_WATCH ? SECCOMP_CLOSE_ALLOCATION : 0);
	int r;

	flags |= SECCOMP_WATCH(observe_shown(p)) |
		 (p->spec->inner && p->spec->inner->interfaces ? SECCOMP_INTERFACES : 0) |
		 kvm_flags[p->spec->inner ? p->spec->inner->kvm : INNER_KVM_NONE];
	r = seccomp_program(p->spec->policy.proc_syscalls, flags, c->filter, ARRAY_LEN(c->filter),
			    &c->filter_len);

	return r < 0 ? ward_fail(e, -r, "cannot make the system call filter") : 0;
}

static int prepare_argv(struct native_memory *m, const struct plan *p, struct ward_err *e)
{
	char *const *words = plan_started(p);
	size_t argc = 0;

	while (words[argc])
		argc++;
	m->argv = calloc(argc + 2, sizeof(*m->argv));
	strv_add(&m->texts, "ward-init");
	if (!m->argv || m->texts.failed)
		return ward_fail(e, ENOMEM, "out of memory");
	m->argv[0] = m->texts.items[m->texts.len - 1];
	memcpy(m->argv + 1, words, argc * sizeof(*m->argv));
	m->child.argv = m->argv;
	m->child.envp = p->env.items;
	return 0;
}

static int prepare_net(struct native_memory *m, const struct plan *p, struct ward_err *e)
{
	struct native_net *net = &m->child.net;
	int r = net_batch_routes(false, &m->routes4);

	if (r == 0)
		r = net_batch_routes(true, &m->routes6);
	if (r == 0)
		r = net_batch_rules(p->net.matches, p->net.match_count, &m->rules);
	if (r == 0)
		r = net_batch_log(&m->log);
	if (r < 0)
		return ward_fail(e, -r, "out of memory");
	net->log = (struct native_bytes){ m->log.data, m->log.len };
	net->routes4 = (struct native_bytes){ m->routes4.data, m->routes4.len };
	net->routes6 = (struct native_bytes){ m->routes6.data, m->routes6.len };
	net->rules = (struct native_bytes){ m->rules.data, m->rules.len };
	net->ports = p->net.ports;
	net->port_count = p->net.port_count;
	net->inward = p->net.published_count > 0;
	net->asks = p->proposals;
	net->on = true;
	return 0;
}

int native_prepare(struct native_memory *m, const struct plan *p, struct ward_err *e)
{
	int r = prepare_mounts(m, p, e);

	m->child.plan = p;
	m->child.rlimits = m->rlimits;
	m->child.rlimit_count = limits_rlimits(p, m->rlimits, ARRAY_LEN(m->rlimits));
	if (r == 0 && p->net.on)
		r = prepare_net(m, p, e);
	if (r == 0)
		r = prepare_argv(m, p, e);
	if (r == 0)
		r = prepare_landlock(&m->child, p, e);
	return r < 0 ? r : prepare_filter(&m->child, p, e);
}
