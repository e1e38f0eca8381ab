/*
 * A virtual machine's part of the plan. In: the policy, the kernel of ward vm setup, the root made
 * of the image, and the template that fits, if there is one. Out: read-only binds beneath /.ward, a
 * small tmpfs there for the socket and the device over which trees go, and the words that ward-vm
 * is started with. A root of an image that was not packed yet is packed now, by ward-vm-tool, if
 * the plan will be run; that of the host, which takes minutes, only by ward vm root host.
 */
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/path.h"
#include "engine/vm/vm.h"
#include "host/program.h"
#include "plan/certs.h"
#include "plan/plan_root.h"
#include "state/vm.h"
#include "vm/disk.h"

#define IO_BYTES (64 * 1024 + DISK_BYTES)
#define IO_INODES 16

static uint64_t memory_of(const struct plan *p)
{
	return p->spec->policy.vm_memory & ~(uint64_t)0xfffff;
}

static bool has_network(const struct plan *p)
{
	return p->spec->policy.net_mode != NET_MODE_NONE;
}

/* As a tree of the policy's: as root it is opened now, because the sandbox's own user does not get
 * into the state directory. */
static int add(struct plan *p, const char *source, const char *target, struct ward_err *e)
{
	struct plan_mount *m = plan_add_bind(p, source, target);
	struct stat st;

	if (!m)
		return ward_fail(e, ENOMEM, "out of memory");
	if (stat(source, &st) < 0)
		return ward_fail_errno(e, "cannot look at %s", source);
	m->is_file = true;
	m->from_policy = true;
	m->dev = st.st_dev;
	m->ino = st.st_ino;
	return 0;
}

static bool is_bound(const struct plan *p, const char *target)
{
	for (size_t i = 0; i < p->mount_count; i++)
		if (p->mounts[i].kind == MOUNT_BIND && strcmp(p->mounts[i].target, target) == 0)
			return true;
	return false;
}

/* Has ward-vm-tool pack the image. What it says goes to the user. */
static int pack_root(const struct plan *p, struct ward_err *e)
{
	auto_free char *tool = NULL, *name = strdup(p->spec->policy.image);
	char verb[] = "root", quiet[] = "--quiet", end[] = "--";
	int status = 0, r = program_path("ward-vm-tool", &tool, e);
	pid_t pid, parent = getpid();

	if (r < 0)
		return r;
	if (!name)
		return ward_fail(e, ENOMEM, "out of memory");
	pid = fork();
	if (pid == 0) {
		/* it would not be waited for */
		if (prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 && getppid() == parent)
			execv(tool, (char *[]){ tool, verb, quiet, end, name, NULL });
		_exit(125);
	}
	if (pid < 0)
		return ward_fail_errno(e, "cannot start %s", tool);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return WIFEXITED(status) && WEXITSTATUS(status) == 0
		       ? 0
		       : ward_fail(e, EIO, "image: cannot make a root from %.200s, see above",
				   name);
}

static int add_root(struct plan *p, char ret_key[SHA256_HEX], struct ward_err *e)
{
	bool host = !p->image.root;
	auto_free char *path = NULL;
	int r = vm_root_key(host ? NULL : &p->image, ret_key, e);

	if (r == 0)
		r = vm_root_path(ret_key, &path, e);
	if (r != 0)
		return r;
	if (access(path, R_OK) < 0 && host) {
		ward_fail(e, ENOENT,
			  "image: the host's directories are not packed as a root for machines, or "
			  "have changed since");
		return ward_remedy(e, "ward vm root host packs them, which takes minutes and "
				      "gigabytes; or use a smaller root: --image NAME");
	}
	if (access(path, R_OK) < 0) {
		if (!p->spec->starts)
			return 0; /* a plan that is only looked at makes nothing */
		r = pack_root(p, e);
		if (r < 0)
			return r;
	}
	return add(p, path, VM_IN_ROOT, e);
}

/* 1: it fits and is bound; 0: there is none. */
static int add_template(struct plan *p, const struct vm_boot *boot, const char *root_key,
			const char *qemu, struct ward_err *e)
{
	const struct vm_kind kind = { boot->id,
				      root_key,
				      p->spec->policy.vm_accel == VM_ACCEL_TCG ? "tcg" : "kvm",
				      qemu,
				      memory_of(p),
				      (unsigned)p->spec->policy.vm_cpus,
				      has_network(p) };
	auto_free char *dir = NULL, *ram = NULL, *state = NULL, *shim = NULL;
	char key[SHA256_HEX], rest[SHA256_HEX + 32];
	int r = vm_template_key(&kind, key, e);

	if (r < 0)
		return r;
	snprintf(rest, sizeof(rest), VM_TEMPLATES "/%s", key);
	r = vm_path(rest, &dir, e);
	ram = r == 0 ? path_join(dir, "ram") : NULL;
	state = r == 0 ? path_join(dir, "state") : NULL;
	if (r < 0 || !ram || !state)
		return r < 0 ? r : ward_fail(e, ENOMEM, "out of memory");
	if (access(ram, R_OK) < 0 || access(state, R_OK) < 0)
		return 0;
	r = program_path("ward-vm-ram.so", &shim, e);
	if (r == 0)
		r = add(p, ram, VM_IN_RAM, e);
	if (r == 0)
		r = add(p, state, VM_IN_STATE, e);
	if (r == 0)
		r = add(p, shim, VM_IN_SHIM, e);
	if (r == 0)
		strv_addf(&p->notes, "the machine starts from the template %.12s", key);
	return r < 0 ? r : 1;
}

/* Where `ward exec` finds the machine: no policy can show it, or show it to another sandbox. */
static int add_io(struct plan *p, struct ward_err *e)
{
	struct plan_mount *m = plan_add_tmpfs(p, VM_IN_IO, 0700);

	if (!m)
		return ward_fail(e, ENOMEM, "out of memory");
	m->bytes = IO_BYTES;
	m->inodes = IO_INODES;
	return 0;
}

int vm_add_mounts(struct plan *p, struct ward_err *e)
{
	auto_free char *runner = NULL, *qemu = NULL;
	char root_key[SHA256_HEX] = "";
	struct vm_boot boot = { 0 };
	int r = program_path("ward-vm", &runner, e);

	if (r == 0)
		r = vm_find_qemu(&qemu, e);
	if (r == 0)
		r = vm_boot_find(&boot, e);
	if (r == 0)
		r = add(p, runner, VM_IN_RUNNER, e);
	if (r == 0)
		r = add_io(p, e);
	if (r == 0)
		r = add_root(p, root_key, e);
	if (r == 0)
		r = add_template(p, &boot, root_key, qemu, e);
	if (r == 0) {
		strv_addf(&p->notes, "the machine boots, because no template matches; ward vm "
				     "template build makes one");
		r = add(p, boot.kernel, VM_IN_KERNEL, e);
		if (r == 0)
			r = add(p, boot.initrd, VM_IN_INITRD, e);
	}
	vm_boot_clear(&boot);
	return r < 0 ? r : 0;
}

static void add_two(struct strv *v, const char *a, const char *b)
{
	strv_add(v, a);
	strv_add(v, b);
}

static void add_number(struct strv *v, const char *name, uint64_t value)
{
	strv_add(v, name);
	strv_addf(v, "%llu", (unsigned long long)value);
}

static void add_machine(const struct plan *p, const char *qemu, struct strv *v)
{
	bool restored = is_bound(p, VM_IN_RAM);

	add_two(v, "--program", qemu);
	add_two(v, "--accel", p->spec->policy.vm_accel == VM_ACCEL_TCG ? "tcg" : "kvm");
	add_number(v, "--memory", memory_of(p));
	add_number(v, "--cpus", p->spec->policy.vm_cpus);
	add_two(v, "--root", VM_IN_ROOT);
	add_two(v, "--disk", VM_IN_DISK);
	if (has_network(p))
		strv_add(v, "--network");
	if (restored) {
		add_two(v, "--ram", VM_IN_RAM);
		add_two(v, "--state", VM_IN_STATE);
		add_two(v, "--shim", VM_IN_SHIM);
	} else {
		add_two(v, "--kernel", VM_IN_KERNEL);
		add_two(v, "--initrd", VM_IN_INITRD);
		add_two(v, "--words",
			has_network(p) ? VM_WORDS_ROOT " " VM_WORDS_NET : VM_WORDS_ROOT);
	}
}

static bool comes_back(const struct plan_mount *m)
{
	return m->writable || m->review;
}

/* Whether it is copied, and what changes in it, with the tree around it: that one comes back, or it
 * does not come back itself. Outer mounts come before inner ones, but for the system's, which are
 * no trees. */
static bool is_in_tree(const struct plan *p, size_t index, const bool *is_tree)
{
	const struct plan_mount *m = &p->mounts[index], *outer = NULL;

	for (size_t i = 0; i < index; i++)
		if (is_tree[i] && path_is_beneath(m->target, p->mounts[i].target))
			outer = &p->mounts[i];
	return outer && (comes_back(outer) || !comes_back(m));
}

/* What of the sandbox is the machine's, too: what the policy gives, what ward itself makes in /etc,
 * and whom programs trust. */
static void add_trees(const struct plan *p, const bool *is_tree, struct strv *v)
{
	bool has_home = false;

	for (size_t i = 0; i < p->mount_count; i++)
		has_home |= is_tree[i] && path_is_beneath(PLAN_HOME, p->mounts[i].target);
	/* the sandbox's own, which ends with it; others may lie in it, so it is the first */
	if (!has_home)
		add_two(v, "--tree", "in:" PLAN_HOME);
	for (size_t i = 0; i < p->mount_count; i++) {
		const struct plan_mount *m = &p->mounts[i];
		bool own_file = m->kind == MOUNT_FILE && strncmp(m->target, "/etc/", 5) == 0 &&
				strcmp(m->target, "/etc/resolv.conf") != 0 &&
				strcmp(m->target, "/etc/hosts") != 0;

		if (is_tree[i] || own_file) {
			strv_add(v, "--tree");
			strv_addf(v, "%s:%s", comes_back(m) ? "rw" : "in", m->target);
		}
	}
	if (p->live->certs)
		add_two(v, "--tree", "in:" CERTS_SYSTEM);
	if (p->live->certs)
		add_two(v, "--tree", "in:" CERTS_DIR);
}

static int fill_trees(const struct plan *p, struct strv *v, struct ward_err *e)
{
	auto_free bool *is_tree = calloc(p->mount_count + 1, sizeof(*is_tree));

	if (!is_tree)
		return ward_fail(e, ENOMEM, "out of memory");
	for (size_t i = 0; i < p->mount_count; i++) {
		const struct plan_mount *m = &p->mounts[i];

		is_tree[i] = m->kind == MOUNT_BIND && m->from_policy &&
			     !path_is_beneath(m->target, "/.ward") && !is_in_tree(p, i, is_tree);
	}
	add_trees(p, is_tree, v);
	return vm_check_room(p, is_tree, memory_of(p), e);
}

static int check_memory(const struct plan *p, struct ward_err *e)
{
	uint64_t limit = p->limits[LIMIT_MEMORY].value,
		 needed = vm_upper_bytes(memory_of(p), (unsigned)p->spec->policy.vm_cpus);

	if (limit == POLICY_NONE || needed <= limit)
		return 0;
	ward_fail(e, EINVAL,
		  "vm.memory: the machine and QEMU itself need %llu MiB, and "
		  "resources.memory_limit is %llu MiB",
		  (unsigned long long)(needed >> 20), (unsigned long long)(limit >> 20));
	return ward_remedy(
		e, "give the machine less (--set vm.memory=256Mi), or the sandbox more (--memory)");
}

int vm_fill_words(struct plan *p, struct ward_err *e)
{
	auto_free char *qemu = NULL;
	int r = check_memory(p, e);

	if (r == 0)
		r = vm_find_qemu(&qemu, e);
	if (r < 0)
		return r;
	add_two(&p->inner_run, VM_IN_RUNNER, "run");
	add_machine(p, qemu, &p->inner_run);
	r = fill_trees(p, &p->inner_run, e);
	if (r < 0)
		return r;
	if (p->spec->policy.res_pids != POLICY_NONE)
		add_number(&p->inner_run, "--pids", p->spec->policy.res_pids);
	if (p->spec->policy.res_open_files != POLICY_NONE)
		add_number(&p->inner_run, "--open-files", p->spec->policy.res_open_files);
	add_number(&p->inner_run, "--uid", p->ids.inside_uid);
	add_number(&p->inner_run, "--gid", p->ids.inside_gid);
	strv_add(&p->inner_run, "--");
	add_two(&p->inner_exec, VM_IN_RUNNER, "exec");
	strv_add(&p->inner_exec, "--");
	add_two(&p->inner_copy, VM_IN_RUNNER, "copy");
	return 0;
}
