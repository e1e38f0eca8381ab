/*
 * Whether gVisor's kernel can run programs by KVM. In: runsc as it was found, /dev/kvm. Out: yes,
 * or why not. Runs in the supervisor as the user, before a sandbox behind gVisor is planned.
 *
 * Three things must hold: the version of runsc is one whose requests to KVM are known, for the
 * sandbox's filter admits no others; KVM runs guests in hardware (host/vm_kvm.c measures that); and
 * the agent can be given the device, which for root is a node of the agent's own that a container
 * may not let it make. What is measured is kept in the state directory: making a machine takes as
 * long as a good part of a start, and a tenth of a second where KVM emulates. A line that names
 * another boot or another /dev/kvm does not count.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io.h"
#include "engine/gvisor/gvisor.h"
#include "host/vm_kvm.h"
#include "plan/plan_root.h"
#include "state/store.h"
#include "state/vm.h"

#define CACHE "gvisor-kvm"
#define IDENTITY_MAX 256
#define LINE_MAX_BYTES 1024

/* As root, if not every user may open it: a device node of another owner can be made and used. */
static int try_node(const struct stat *st, struct ward_err *e)
{
	auto_fd place = -1, node = -1;

	if (geteuid() != 0 || (st->st_mode & 0006) == 0006)
		return 0;
	place = plan_make_node(st->st_rdev, 0, 0);
	node = place < 0 ? -1 : openat(place, "node", O_RDWR | O_CLOEXEC);
	return node < 0 ? ward_fail(e, EACCES,
				    "cannot create a device node of " VM_KVM " for the agent")
			: 0;
}

/* What tells this /dev/kvm of this boot from others; empty: nothing does. */
static void identify(const struct stat *st, char ret_text[IDENTITY_MAX])
{
	const char *boot = io_boot_id();

	ret_text[0] = '\0';
	if (!boot[0])
		return;
	snprintf(ret_text, IDENTITY_MAX,
		 "%.36s %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 ".%ld ", boot,
		 (uint64_t)st->st_dev, (uint64_t)st->st_ino, (uint64_t)st->st_rdev,
		 (uint64_t)st->st_ctim.tv_sec, st->st_ctim.tv_nsec);
}

/* "yes", or "no WHY": what was kept. 1: it has to be measured. */
static int recall(const char *answer, struct ward_err *e)
{
	const char *end = strchr(answer, '\n');

	if (strcmp(answer, "yes\n") == 0)
		return 0;
	if (strncmp(answer, "no ", 3) != 0 || !end)
		return 1;
	return ward_fail(e, ENOTSUP, "%.*s", (int)(end - answer - 3), answer + 3);
}

/* KVM's own part, measured or remembered. */
static int measure(int kvm, const struct stat *st, struct ward_err *e)
{
	struct ward_err ignored = { 0 };
	auto_fd dir = store_open(&ignored);
	auto_buf kept = { 0 };
	char identity[IDENTITY_MAX], line[LINE_MAX_BYTES];
	int r = 1;

	identify(st, identity);
	if (dir >= 0 && identity[0] && io_read_file(dir, CACHE, sizeof(line), &kept) == 0 &&
	    strncmp(buf_text(&kept), identity, strlen(identity)) == 0)
		r = recall(buf_text(&kept) + strlen(identity), e);
	if (r <= 0)
		return r;
	r = vm_measure_kvm(kvm, e);
	snprintf(line, sizeof(line), "%s%s%s\n", identity, r == 0 ? "yes" : "no ",
		 r == 0 ? "" : e->why);
	if (dir >= 0 && identity[0])
		gvisor_keep(dir, CACHE, line);
	return r;
}

int gvisor_probe_kvm(const struct gvisor_runtime *r, struct ward_err *e)
{
	auto_fd kvm = -1;
	struct stat st;

	if (!r->known) {
		ward_fail(e, ENOTSUP,
			  "ward does not know which KVM calls %s of %u makes, so no filter allows "
			  "them",
			  r->path, r->date);
		return ward_remedy(
			e, "use the runsc from bookworm-backports directly, not through a script");
	}
	kvm = vm_open_kvm(e);
	if (kvm < 0)
		return kvm;
	if (stat(VM_KVM, &st) < 0)
		return ward_fail_errno(e, "cannot access " VM_KVM);
	return try_node(&st, e) < 0 ? -e->code : measure(kvm, &st, e);
}
