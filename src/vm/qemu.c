/*
 * QEMU as the monitor. In: a machine as it shall be. Out: QEMU as a child in a session of its own,
 * the guest's port and, for a template, the control channel as socket pairs that have no path. Runs
 * in ward-vm inside the native sandbox; QEMU locks itself up further (-sandbox) and can start
 * nothing.
 *
 * A template's memory is a file that QEMU maps shared while the template is made; what else there
 * is of the machine is a migration without that memory. A clone maps the same file privately and
 * loads the rest. The devices of both must be the same in the same order: both come from
 * add_devices().
 */
#include "vm/vmm.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>

#include "base/io.h"
#include "vm/kvm_cpu.h"
#include "vm/qmp.h"
#include "vm/tsc.h"

#define ANSWER_MS 20000
/* descriptors that QEMU has room for without asking again: it takes about 90 */
#define FD_TABLE 255
#define IGNORE_SHARED                                                                              \
	"{\"execute\":\"migrate-set-capabilities\",\"arguments\":{\"capabilities\":[{"             \
	"\"capability\":\"x-ignore-shared\",\"state\":true}]}}"

/* What the child gets under the same numbers. */
struct ends {
	int port, control, state, words;
};

static void add_machine(struct strv *v, const struct vm_config *c)
{
	static const char *const fixed[] = {
		"-nodefaults",
		"-no-user-config",
		"-no-reboot",
		"-display",
		"none",
		"-monitor",
		"none",
		"-parallel",
		"none",
		"-sandbox",
		"on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny"
	};
	bool kvm = strcmp(c->accel, "kvm") == 0;

	strv_add(v, c->program);
	for (size_t i = 0; i < ARRAY_LEN(fixed); i++)
		strv_add(v, fixed[i]);
	strv_add(v, "-machine");
	strv_add(v, "microvm,pcie=on,memory-backend=ram");
	strv_add(v, "-accel");
	strv_add(v, kvm ? "kvm" : "tcg,thread=multi,tb-size=64");
	strv_add(v, "-cpu");
	/* emulated, an instruction that moves a page moves each byte separately: slower than any
	 * loop */
	strv_add(v, kvm ? kvm_cpu_model() : "max,-erms,-fsrm");
	strv_add(v, "-smp");
	strv_addf(v, "%u", c->cpus);
	strv_add(v, "-m");
	strv_addf(v, "%lluM", (unsigned long long)(c->memory_bytes >> 20));
}

static void add_memory(struct strv *v, const struct vm_config *c)
{
	unsigned long long size = (unsigned long long)(c->memory_bytes >> 20);

	strv_add(v, "-object");
	if (!c->ram)
		strv_addf(v, "memory-backend-ram,id=ram,size=%lluM", size);
	else if (!c->state)
		strv_addf(v, "memory-backend-file,id=ram,size=%lluM,mem-path=%s,share=on", size,
			  c->ram);
	else
		strv_addf(v, "memory-backend-file,id=ram,size=%lluM,mem-path=%s,share=off%s", size,
			  c->ram, c->shim ? "" : ",readonly=on,rom=off");
}

static void add_devices(struct strv *v, const struct vm_config *c, const struct ends *fds)
{
	strv_add(v, "-chardev");
	strv_addf(v, "socket,id=port,fd=%d", fds->port);
	strv_add(v, "-device");
	/* one that is a console's, and ours; with all 31 QEMU makes 64 descriptors more */
	strv_add(v, "virtio-serial-pci,max_ports=2");
	strv_add(v, "-device");
	strv_add(v, "virtserialport,chardev=port,name=ward.0");
	if (c->root) {
		strv_add(v, "-drive");
		strv_addf(v, "if=none,id=root,format=raw,readonly=on,file.locking=off,file=%s",
			  c->root);
		strv_add(v, "-device");
		strv_add(v, "virtio-blk-pci,drive=root");
	}
	if (c->disk) {
		strv_add(v, "-drive");
		strv_addf(v, "if=none,id=disk,format=raw,file.locking=off,file=%s", c->disk);
		strv_add(v, "-device");
		strv_add(v, "virtio-blk-pci,drive=disk");
	}
	if (c->network) {
		strv_add(v, "-netdev");
		strv_add(v, "user,id=net,ipv6=off");
		strv_add(v, "-device");
		strv_add(v, "virtio-net-pci,netdev=net,romfile=");
	}
	if (fds->control >= 0) {
		strv_add(v, "-chardev");
		strv_addf(v, "socket,id=control,fd=%d", fds->control);
		strv_add(v, "-mon");
		strv_add(v, "chardev=control,mode=control");
	}
	strv_add(v, "-serial");
	if (c->console)
		strv_addf(v, "file:%s", c->console);
	else
		strv_add(v, "none");
}

/* The kernel and its command line, or that a saved state will come. */
static void add_begin(struct strv *v, const struct vm_config *c)
{
	auto_buf words = { 0 };

	if (c->state) {
		strv_add(v, "-incoming");
		strv_add(v, "defer");
		return;
	}
	buf_puts(&words, "panic=-1 reboot=t quiet random.trust_cpu=on");
	if (c->console)
		buf_puts(&words, " console=ttyS0");
	/* see tsc.c; and emulation needs no defence against its own processor */
	if (strcmp(c->accel, "tcg") == 0)
		buf_printf(&words,
			   " tsc=reliable tsc_early_khz=%lu no_timer_check nokaslr lpj=5000000 "
			   "mitigations=off no5lvl psi=0 noautogroup lsm=landlock,yama "
			   "clearcpuid=rep_good",
			   tsc_khz());
	if (c->words)
		buf_printf(&words, " %s", c->words);
	strv_add(v, "-kernel");
	strv_add(v, c->kernel);
	strv_add(v, "-initrd");
	strv_add(v, c->initrd);
	strv_add(v, "-append");
	strv_add(v, buf_text(&words));
	v->failed |= words.failed;
}

/* A table of descriptors that grows while threads share it makes the calling thread wait until no
 * processor can be looking at the old one: ten milliseconds of QEMU's start. One that grows now,
 * with a single thread, does not, and stays as large. */
static void widen_fd_table(int fd)
{
	if (dup2(fd, FD_TABLE) >= 0)
		close(FD_TABLE);
}

/* The child, between fork and exec. */
__attribute__((noreturn)) static void become_qemu(char **argv, char **envp, const struct ends *fds)
{
	const int keep[] = { fds->port, fds->control, fds->state };
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	sigset_t none;

	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	setsid();
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	widen_fd_table(null);
	dup2(null, 0);
	dup2(null, 1);
	dup2(fds->words, 2);
	for (size_t i = 0; i < ARRAY_LEN(keep); i++)
		if (keep[i] >= 0)
			fcntl(keep[i], F_SETFD, 0);
	execve(argv[0], argv, envp);
	_exit(127);
}

static int start_child(const struct vm_config *c, const struct ends *fds, struct vm *ret,
		       struct ward_err *e)
{
	auto_strv argv = { 0 }, envp = { 0 };
	pid_t parent = getpid();

	add_machine(&argv, c);
	add_memory(&argv, c);
	add_devices(&argv, c, fds);
	add_begin(&argv, c);
	strv_add(&envp, "PATH=/usr/bin:/bin");
	if (c->shim && c->state) {
		strv_addf(&envp, "LD_PRELOAD=%s", c->shim);
		strv_addf(&envp, "WARD_VM_RAM=%s", c->ram);
	}
	if (argv.failed || envp.failed)
		return ward_fail(e, ENOMEM, "out of memory");
	ret->pid = fork();
	if (ret->pid == 0) {
		if (getppid() == parent)
			become_qemu(argv.items, envp.items, fds);
		_exit(127);
	}
	if (ret->pid < 0)
		return ward_fail_errno(e, "cannot start QEMU");
	ret->pid_fd = (int)syscall(SYS_pidfd_open, ret->pid, 0);
	return ret->pid_fd < 0 ? ward_fail_errno(e, "cannot watch QEMU") : 0;
}

/* All at once, without waiting for answers: where one is a refusal, QEMU ends, and that is seen. */
static int restore(struct vm *v, int state_fd, struct ward_err *e)
{
	char text[512];
	int n = snprintf(text, sizeof(text),
			 "{\"execute\":\"qmp_capabilities\"}\n" IGNORE_SHARED
			 "\n{\"execute\":\"migrate-incoming\",\"arguments\":{\"uri\":\"fd:%d\"}}\n",
			 state_fd);
	int r = io_write_all(v->control_fd, text, (size_t)n);

	return r < 0 ? ward_fail(e, -r, "cannot talk to QEMU: %s", strerror(-r)) : 0;
}

static int open_ends(const struct vm_config *c, struct ends *fds, struct vm *ret,
		     struct ward_err *e)
{
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return ward_fail_errno(e, "cannot create a socket");
	ret->port_fd = pair[0];
	fds->port = pair[1];
	if (c->control || c->state) {
		if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
			return ward_fail_errno(e, "cannot create a socket");
		ret->control_fd = pair[0];
		fds->control = pair[1];
	}
	if (pipe2(pair, O_CLOEXEC | O_NONBLOCK) < 0)
		return ward_fail_errno(e, "cannot make a pipe");
	ret->words_fd = pair[0];
	fds->words = pair[1];
	if (c->state) {
		fds->state = open(c->state, O_RDONLY | O_CLOEXEC);
		if (fds->state < 0)
			return ward_fail_errno(e, "cannot open %s", c->state);
	}
	return 0;
}

static int qemu_start(const struct vm_config *c, struct vm *ret, struct ward_err *e)
{
	struct ends fds = { -1, -1, -1, -1 };
	int *const all[] = { &fds.port, &fds.control, &fds.state, &fds.words };
	int r;

	*ret = (struct vm){ .pid_fd = -1, .port_fd = -1, .control_fd = -1, .words_fd = -1 };
	r = open_ends(c, &fds, ret, e);
	if (r == 0)
		r = start_child(c, &fds, ret, e);
	if (r == 0 && c->state)
		r = restore(ret, fds.state, e);
	for (size_t i = 0; i < ARRAY_LEN(all); i++)
		own_close_fd(all[i]);
	if (r < 0)
		vm_close(ret);
	return r;
}

static int wait_for_migration(struct vm *v, struct ward_err *e)
{
	const struct timespec pause = { .tv_nsec = 5000000 };
	struct qmp_line line;

	for (uint64_t until_ms = io_now_ms() + ANSWER_MS; io_now_ms() < until_ms;
	     nanosleep(&pause, NULL)) {
		int r = qmp_call(v->control_fd, &v->received, "{\"execute\":\"query-migrate\"}", -1,
				 ANSWER_MS, &line, e);

		if (r < 0)
			return r;
		if (strcmp(line.status, "completed") == 0)
			return 0;
		if (strcmp(line.status, "failed") == 0 || strcmp(line.status, "cancelled") == 0)
			return vm_fail_with_words(v, "QEMU could not write the state", e);
	}
	return ward_fail(e, ETIMEDOUT, "QEMU did not finish the state");
}

/* The guest is not stopped first: it would be restored as one that is stopped. The migration itself
 * stops it, for good. */
static int qemu_snapshot(struct vm *v, int state_fd, struct ward_err *e)
{
	struct qmp_line line;
	int r = qmp_greet(v->control_fd, &v->received, ANSWER_MS, e);

	if (r == 0)
		r = qmp_call(v->control_fd, &v->received, IGNORE_SHARED, -1, ANSWER_MS, &line, e);
	if (r == 0)
		r = qmp_call(v->control_fd, &v->received,
			     "{\"execute\":\"getfd\",\"arguments\":{\"fdname\":\"state\"}}",
			     state_fd, ANSWER_MS, &line, e);
	if (r == 0)
		r = qmp_call(v->control_fd, &v->received,
			     "{\"execute\":\"migrate\",\"arguments\":{\"uri\":\"fd:state\"}}", -1,
			     ANSWER_MS, &line, e);
	if (r == 0)
		r = wait_for_migration(v, e);
	if (r == 0)
		r = qmp_call(v->control_fd, &v->received, "{\"execute\":\"quit\"}", -1, ANSWER_MS,
			     &line, e);
	return r;
}

const struct vmm vmm_qemu = { .name = "qemu", .start = qemu_start, .snapshot = qemu_snapshot };
