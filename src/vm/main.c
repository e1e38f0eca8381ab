/*
 * ward-vm: the runner of the vm engine. It is started by ward-init inside a native sandbox in place
 * of the command, starts the virtual machine there, and the command in it.
 *
 *	ward-vm run OPTIONS -- CMD...		a machine with this command; its exit status is the
 *						command's
 *	ward-vm exec -- CMD...			one more command in the machine that runs here (ward
 *						exec)
 *	ward-vm copy get PATH | put PATH NAME	files out of the machine and into it (ward cp)
 *	ward-vm template OPTIONS --out FILE	a machine that boots, gets ready and is written
 *						down: FILE, and the memory in --ram
 *
 * It has the sandbox's rights and no others. What the machine says is untrusted (serve.c, qmp.c).
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <time.h>

#include "base/io.h"
#include "protocol/guest.h"
#include "vm/disk.h"
#include "vm/options.h"
#include "vm/serve.h"

#define READY_MS 300000 /* an emulated machine on a busy host takes long */
/* what a kernel still does when it has booted; else each clone does it, before it reads its first
 * message */
#define SETTLE_MS 500
#define SOCKET "/.ward/vm-io/socket" /* the directory: engine/vm/vm.h */

static int say(const struct ward_err *e, int code)
{
	auto_buf out = { 0 };

	buf_printf(&out, "ward-vm: %s%s%s%s%s\n", e->what, *e->what ? ": " : "", e->why,
		   *e->remedy ? "; " : "", e->remedy);
	if (out.data && io_write_all(STDERR_FILENO, out.data, out.len) < 0)
		return code; /* there is no reader */
	return code;
}

/* The device over which trees go: new, and as large as it ever gets. */
static int make_disk(const char *path, int *ret_fd, struct ward_err *e)
{
	auto_fd fd =
		path ? open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600) : -1;

	if (path && (fd < 0 || ftruncate(fd, DISK_BYTES) < 0))
		return ward_fail_errno(e, "cannot make %s", path);
	*ret_fd = take_fd(&fd);
	return 0;
}

static void fill_setup(const struct vm_options *o, const struct vm *v, int disk_fd,
		       struct vm_tree *trees, char *cwd, struct vm_setup *ret)
{
	for (size_t i = 0; i < o->tree_count; i++)
		trees[i] = (struct vm_tree){ .path = o->trees[i] + 3,
					     .writable = o->trees[i][1] == 'w' };
	*ret = (struct vm_setup){
		.argc = o->word_count,
		.argv = o->words,
		.envp = environ,
		.cwd = getcwd(cwd, PATH_MAX) ? cwd : "/",
		.uid = (uint32_t)o->uid,
		.gid = (uint32_t)o->gid,
		.trees = trees,
		.tree_count = o->tree_count,
		.pids = o->pids,
		.files = o->open_files,
		.socket_path = o->socket ? o->socket : SOCKET,
		.qemu_pid_fd = v->pid_fd,
		.disk_fd = disk_fd,
		.tell_times = getenv("WARD_VM_TIMES") != NULL,
	};
}

static int run(int argc, char **argv, struct ward_err *e)
{
	struct vm_tree trees[VM_TREES_MAX];
	char cwd[PATH_MAX];
	struct vm_options o;
	struct vm_setup setup;
	struct vm v = { 0 };
	auto_fd disk = -1;
	int r = vm_options_read(argc, argv, &o, e);

	if (r == 0 && o.word_count == 0)
		r = ward_fail(e, EINVAL, "there is no command");
	if (r == 0)
		r = make_disk(o.config.disk, &disk, e);
	if (r == 0)
		r = vmm_qemu.start(&o.config, &v, e);
	if (r < 0)
		return say(e, 125);
	fill_setup(&o, &v, disk, trees, cwd, &setup);
	r = o.config.state ? 0 : vm_wait_ready(v.port_fd, READY_MS, e);
	if (r == 0)
		r = vm_serve(v.port_fd, &setup, e);
	if (r < 0) {
		struct ward_err words = { 0 };

		say(e, 125);
		vm_fail_with_words(&v, "the virtual machine", &words);
		if (strcmp(words.why, "the virtual machine") != 0)
			say(&words, 125);
	}
	vm_close(&v);
	if (r < 0)
		return 125;
	vm_end_like(r & VM_EXIT_SPENT ? GUEST_SPENT : r);
}

static void let_settle(void)
{
	const struct timespec pause = { .tv_sec = SETTLE_MS / 1000,
					.tv_nsec = SETTLE_MS % 1000 * 1000000 };

	nanosleep(&pause, NULL);
}

static int make_template(int argc, char **argv, struct ward_err *e)
{
	struct vm_options o;
	struct vm v;
	auto_fd out = -1, disk = -1;
	int r = vm_options_read(argc, argv, &o, e);

	if (r == 0 && (!o.out || !o.config.ram || o.config.state))
		r = ward_fail(e, EINVAL, "a template needs --ram and --out");
	if (r == 0)
		r = make_disk(o.config.disk, &disk, e);
	if (r < 0)
		return say(e, 125);
	out = open(o.out, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
	if (out < 0) {
		ward_fail_errno(e, "cannot make %s", o.out);
		return say(e, 125);
	}
	o.config.control = true;
	r = vmm_qemu.start(&o.config, &v, e);
	if (r < 0)
		return say(e, 125);
	r = vm_wait_ready(v.port_fd, READY_MS, e);
	if (r == 0) {
		let_settle();
		r = vmm_qemu.snapshot(&v, out, e);
	}
	if (r < 0) {
		const struct ward_err inner = *e;

		vm_fail_with_words(
			&v, inner.why[0] ? inner.why : "the virtual machine did not become ready",
			e);
	}
	vm_close(&v);
	return r < 0 ? say(e, 125) : 0;
}

/* As the command ended, or 125 with the reason. */
static int end(int status, const struct ward_err *e)
{
	if (status < 0)
		return say(e, 125);
	vm_end_like(status);
}

int main(int argc, char **argv)
{
	struct ward_err e = { 0 };
	const char *verb = argc > 1 ? argv[1] : "";

	if (strcmp(verb, "run") == 0)
		return run(argc - 2, argv + 2, &e);
	if (strcmp(verb, "template") == 0)
		return make_template(argc - 2, argv + 2, &e);
	if (strcmp(verb, "exec") == 0 && argc > 3 && strcmp(argv[2], "--") == 0)
		return end(vm_exec_client(SOCKET, argc - 3, argv + 3, environ, &e), &e);
	if (strcmp(verb, "copy") == 0)
		return end(vm_copy_client(SOCKET, argc - 2, argv + 2, &e), &e);
	ward_fail(&e, EINVAL, "ward-vm is started by ward run --isolation vm");
	return say(&e, 2);
}
