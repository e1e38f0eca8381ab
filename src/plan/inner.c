/*
 * Walls inside a native sandbox, as planner and supervisor see them. In: the inner runtime that the
 * policy's `isolation` picked. Out: mounts and words in the plan; packets for ward-init in which a
 * command of `ward exec` stands behind the words of the inner runtime's own client. Runs in the
 * supervisor. What an inner runtime is made of is the business of src/engine.
 */
#include "plan/inner.h"

#include <errno.h>
#include <string.h>

#include "event/table_names.h"
#include "plan/plan_root.h"
#include "protocol/guest.h"

int inner_add_mounts(struct plan *p, struct ward_err *e)
{
	const struct inner *w = p->spec->inner;
	const struct unseen *unseen = w ? unseen_behind(w->name) : NULL;

	if (unseen)
		strv_addf(&p->notes, "ward does not see %s%s%s", unseen->what,
			  *unseen->next ? "; " : "", unseen->next);
	return w && w->mounts ? w->mounts(p, e) : 0;
}

int inner_add_devices(struct plan *p, struct ward_err *e)
{
	static const char *const fields[] = {
		[INNER_KVM_MACHINE] = "vm.accel", [INNER_KVM_SENTRY] = "gvisor.platform"
	};
	unsigned kvm = p->spec->inner ? p->spec->inner->kvm : INNER_KVM_NONE;
	int r = kvm ? plan_add_device(p, fields[kvm], "/dev/kvm", "kvm", e) : 0;

	return r > 0 ? ward_fail(e, ENODEV, "%s: there is no /dev/kvm", fields[kvm]) : r;
}

/* What ward-init starts: the inner runtime's words, then the command's. */
static int join_words(struct plan *p, const char *const *command, struct ward_err *e)
{
	size_t own = 0;

	while (command[own])
		own++;
	p->started = calloc(p->inner_run.len + own + 1, sizeof(*p->started));
	if (!p->started || p->inner_run.failed || p->inner_exec.failed || p->inner_copy.failed)
		return ward_fail(e, ENOMEM, "out of memory");
	memcpy(p->started, p->inner_run.items, p->inner_run.len * sizeof(*p->started));
	memcpy(p->started + p->inner_run.len, command, own * sizeof(*p->started));
	return 0;
}

/* Only a cgroup counts what the kernel itself keeps for a machine. */
static bool in_cgroup(const struct plan_limit *l)
{
	return l->held_by == HELD_CGROUP1 || l->held_by == HELD_CGROUP2;
}

int inner_fill_words(struct plan *p, struct ward_err *e)
{
	const struct inner *w = p->spec->inner;
	int r;

	if (!w)
		return 0;
	if (w->kvm && p->limits[LIMIT_MEMORY].value != POLICY_NONE &&
	    !in_cgroup(&p->limits[LIMIT_MEMORY]))
		strv_add(&p->notes, "resources.memory_limit: no cgroup enforces it here, so kernel "
				    "memory for the machine (KVM) is not counted");
	r = w->words(p, e);
	if (r < 0 || !p->argv)
		return r;
	if (p->argv[0])
		return join_words(p, (const char *const *)p->argv, e);
	if (w->needs_command) {
		ward_fail(e, EINVAL,
			  "isolation: %s needs a long-running command before others can be started "
			  "next to it",
			  w->name);
		return ward_remedy(e, "ward run -d ... -- sleep infinity");
	}
	return w->idle ? join_words(p, w->idle, e) : 0;
}

int inner_packet(const struct strv *exec, const struct strv *copy, const char *bytes, size_t n,
		 struct buf *out)
{
	const struct strv *words;
	struct guest_message m;
	const char *end;
	size_t head;

	if (n < sizeof(m))
		return -EINVAL;
	memcpy(&m, bytes, sizeof(m));
	words = m.op == GUEST_COPY ? copy : exec;
	if (!words->len)
		return 0;
	end = memchr(bytes + sizeof(m), '\0', n - sizeof(m));
	if (!end)
		return -EINVAL;
	head = (size_t)(end + 1 - bytes);
	m.op = GUEST_EXEC;
	m.a += (int32_t)words->len;
	buf_add(out, &m, sizeof(m));
	buf_add(out, bytes + sizeof(m), head - sizeof(m));
	for (size_t i = 0; i < words->len; i++)
		buf_add(out, words->items[i], strlen(words->items[i]) + 1);
	buf_add(out, bytes + head, n - head);
	if (out->failed)
		return -ENOMEM;
	return out->len > GUEST_PACKET_MAX ? -E2BIG : 1;
}
