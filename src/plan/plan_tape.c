/*
 * Recordings in a plan (network.record, network.replay). In: a path of the policy. Out: an open
 * descriptor that the gateway gets, or a refusal. A recording is a new file: it never replaces one,
 * is made through no link at its place, and lies where nothing inside can reach it. One to replay
 * is read here once, so that a bad one is reported before anything starts. Runs in the supervisor
 * as the user; only a spec that starts makes a file.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "base/path.h"
#include "plan/plan_reach.h"
#include "plan/plan_root.h"
#include "plan/plan_tape.h"
#include "rules/tape.h"

#define FIRST_FD 16 /* above all that the gateway's descriptors are put on */

int plan_tape_check(const struct policy *policy, const struct rules *rules, struct ward_err *e)
{
	const char *field = policy->net_record ? "network.record" : "network.replay";

	if (!policy->net_record && !policy->net_replay)
		return 0;
	if (policy->net_record && policy->net_replay)
		return ward_fail(e, EINVAL, "network.record and network.replay exclude each other");
	if (policy->net_mode == NET_MODE_NONE || !rules) {
		ward_fail(e, EINVAL,
			  "%s: network.mode is none, so there is nothing to record or replay",
			  field);
		return ward_remedy(
			e,
			"set network.mode: restricted, with the hosts in network.egress_allowlist");
	}
	if (!rules_look(rules)) {
		ward_fail(e, EINVAL,
			  "%s: no rule of network.egress_allowlist inspects requests, and only "
			  "inspected requests are recorded",
			  field);
		return ward_remedy(e, "set mode: inspect in the rules of those hosts");
	}
	if (policy->net_replay && policy->net_ingress.len) {
		ward_fail(e, EINVAL,
			  "network.replay: a replayed run has no network, so network.ingress "
			  "publishes nothing");
		return ward_remedy(e, "network.ingress: deny_all");
	}
	return 0;
}

static int make_file(struct plan *p, struct plan_tape *t, struct ward_err *e)
{
	const char *name = strrchr(t->path, '/') + 1;
	auto_free char *dir = NULL;
	auto_fd dir_fd = -1, fd = -1;
	struct stat st;
	int r = plan_reach_file(p, "network.record", t->path, &dir, e);

	if (r < 0)
		return r;
	*strrchr(dir, '/') = '\0';
	dir_fd = open(*dir ? dir : "/", O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (dir_fd < 0)
		return ward_fail_errno(e, "network.record: cannot open the directory of %s",
				       t->path);
	if (fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0) {
		ward_fail(e, EEXIST, "network.record: %s already exists", t->path);
		return ward_remedy(e,
				   "name another file, or remove it; to replay it: network.replay");
	}
	if (!p->spec->starts)
		return 0;
	fd = openat(dir_fd, name, O_RDWR | O_APPEND | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
		    0600);
	if (fd < 0)
		return ward_fail_errno(e, "network.record: cannot make %s", t->path);
	t->fd = fcntl(fd, F_DUPFD_CLOEXEC, FIRST_FD);
	if (t->fd < 0) {
		ward_fail_errno(e, "network.record: cannot make %s", t->path);
		unlinkat(dir_fd, name, 0);
		return -e->code;
	}
	t->dir_fd = take_fd(&dir_fd);
	return 0;
}

static int read_file(struct plan *p, struct plan_tape *t, struct ward_err *e)
{
	auto_fd fd = open(t->path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	struct tape tape;
	struct stat st;
	void *bytes;
	int r;

	if (fd < 0 || fstat(fd, &st) < 0)
		return ward_fail_errno(e, "network.replay: cannot open %s", t->path);
	if (!S_ISREG(st.st_mode) || st.st_size < TAPE_START) {
		ward_fail(e, EINVAL, "network.replay: %s is not a ward recording", t->path);
		return ward_remedy(e, "a run with --set network.record=FILE makes one");
	}
	bytes = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (bytes == MAP_FAILED)
		return ward_fail_errno(e, "network.replay: cannot read %s", t->path);
	r = tape_open(bytes, (uint64_t)st.st_size, &tape, e);
	if (r < 0) {
		ward_wrap(e, "network.replay: %s", t->path);
		munmap(bytes, (size_t)st.st_size);
		return ward_remedy(e, "record it again: network.record");
	}
	t->exchanges = tape.count;
	t->bytes = tape.len;
	memcpy(t->hash, tape.hash, sizeof(t->hash));
	if (!tape.closed)
		strv_addf(&p->notes,
			  "network.replay: %s breaks off after %u exchanges: its run was killed, "
			  "or the file was changed",
			  t->path, tape.count);
	tape_close(&tape);
	munmap(bytes, (size_t)st.st_size);
	t->fd = fcntl(fd, F_DUPFD_CLOEXEC, FIRST_FD);
	return t->fd < 0 ? ward_fail_errno(e, "network.replay: cannot open %s", t->path) : 0;
}

int plan_add_tape(struct plan *p, struct ward_err *e)
{
	const struct policy *policy = &p->spec->policy;
	bool record = policy->net_record != NULL;
	int r;

	if (!policy->net_record && !policy->net_replay)
		return 0;
	r = plan_tape_check(policy, p->net.on ? p->net.rules : NULL, e);
	if (r < 0)
		return r;
	p->live->tape = calloc(1, sizeof(*p->live->tape));
	if (!p->live->tape)
		return ward_fail(e, ENOMEM, "out of memory");
	p->live->tape->fd = p->live->tape->dir_fd = -1;
	p->live->tape->replay = !record;
	p->live->tape->path = path_clean(record ? policy->net_record : policy->net_replay);
	if (!p->live->tape->path || !p->live->tape->path[1])
		return ward_fail(e, EINVAL, "network.%s: not a file path",
				 record ? "record" : "replay");
	return record ? make_file(p, p->live->tape, e) : read_file(p, p->live->tape, e);
}

/* A run that was refused behind the making of its file leaves none: an empty one would be in the
 * way of the next. */
static void remove_empty(const struct plan_tape *t)
{
	const char *name = strrchr(t->path, '/') + 1;
	struct stat made, there;

	if (fstat(t->fd, &made) == 0 && made.st_size == 0 &&
	    fstatat(t->dir_fd, name, &there, AT_SYMLINK_NOFOLLOW) == 0 &&
	    there.st_ino == made.st_ino && there.st_dev == made.st_dev)
		unlinkat(t->dir_fd, name, 0);
}

void plan_tape_free(struct plan_tape *t)
{
	if (!t)
		return;
	if (t->dir_fd >= 0)
		remove_empty(t);
	own_close_fd(&t->dir_fd);
	own_close_fd(&t->fd);
	free(t->path);
	free(t);
}
