/*
 * An emulated machine translates what it runs through, and a clone begins with nothing translated:
 * its first command takes ten times what the next one does. So a guest that has been greeted and is
 * then left alone, before any command, starts one of its own, again and again until it is no longer
 * getting faster, in rounds of three: this very program, which is rehearse_main() where it is not
 * pid 1; another one that has it for its loader; and one that is stopped, as a command that comes
 * meanwhile does it. It goes through every step of a command (job.c, streams.c), in channel 0,
 * about which nothing is reported. After that it does so now and then for some seconds, because
 * some of what a kernel does it does once in a second or two, and a first command meets it. In: a
 * idle guest. Out: the same guest, with a few pages of the root in memory. No program of the root
 * is run; the beginning of the shell, or of another file each time, is looked up, read from the
 * device and mapped, because that is how every command begins. A command that comes meanwhile ends
 * it and goes on with what is translated by then.
 */
#include <dirent.h>
#include <elf.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

#include "vm/guest/agent.h"

#define ALONE_MS 2        /* after so long a guest that has done nothing yet is left alone */
#define STOP_MS 1         /* how long the one runs that is stopped */
#define VAIN_ROUNDS 2     /* so often without being faster: that is how fast it is */
#define ALL_NS 800000000u /* it is fast after so long, or never */
#define FIRST_PAUSE_MS 32 /* then each pause is twice the last */
#define LAST_PAUSE_MS 4096
#define TEMPLATE_TIMES 4
#define TEMPLATE_USER 65534 /* the user "nobody": the commands' user is not known there */
#define PAGE 4096
#define PROGRAM_AT 0x400000
#define FILE_AT 0x800000
#define FILE_BYTES (4 * PAGE) /* what a kernel reads ahead where a file begins */
#define LIST_BYTES 4096       /* of a directory: a hundred names */

/* A program as they mostly are: it lies where it was linked for and has another one load it, which
 * is this one. */
static const struct {
	Elf64_Ehdr head;
	Elf64_Phdr parts[4];
	char loader[16];
} program = {
	.head = { .e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB,
			       EV_CURRENT },
		  .e_type = ET_EXEC,
		  .e_machine = EM_X86_64,
		  .e_version = EV_CURRENT,
		  .e_entry = PROGRAM_AT,
		  .e_phoff = sizeof(Elf64_Ehdr),
		  .e_ehsize = sizeof(Elf64_Ehdr),
		  .e_phentsize = sizeof(Elf64_Phdr),
		  .e_phnum = 4 },
	.parts = { { .p_type = PT_INTERP,
		     .p_offset = sizeof(program.head) + sizeof(program.parts),
		     .p_filesz = sizeof(program.loader),
		     .p_flags = PF_R },
		   { .p_type = PT_LOAD,
		     .p_vaddr = PROGRAM_AT,
		     .p_filesz = sizeof(program),
		     .p_memsz = sizeof(program),
		     .p_flags = PF_R | PF_X,
		     .p_align = PAGE },
		   { .p_type = PT_LOAD,
		     .p_vaddr = PROGRAM_AT + PAGE,
		     .p_filesz = sizeof(program),
		     .p_memsz = 2 * PAGE,
		     .p_flags = PF_R | PF_W,
		     .p_align = PAGE },
		   { .p_type = PT_GNU_STACK, .p_flags = PF_R | PF_W, .p_align = 16 } },
	.loader = "/proc/self/exe",
};

static uint64_t now_ns(void)
{
	struct timespec t = { 0 };

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

int rehearse_in_ms(const struct agent *a)
{
	const struct rehearsal *r = &a->rehearsal;

	if (!a->greeted || a->used || !a->childless || a->jobs[0].active || a->quiescing ||
	    a->out_len || a->in_len || a->channels > 1 || r->pause_ms > LAST_PAUSE_MS)
		return -1;
	return r->times % REHEARSE_ROUND || !r->pause_ms ? ALONE_MS : r->pause_ms;
}

/* As a frame of the host's comes. */
static void say(struct agent *a, enum vm_type type, const void *payload, size_t n)
{
	a->in_len += wire_put(a->in + a->in_len, type, 1, 0, payload, n);
}

void rehearse(struct agent *a)
{
	const struct vm_start start = { .kind = VM_RUN, .argc = 2, .envc = 1 };
	struct rehearsal *r = &a->rehearsal;
	unsigned turn = r->times % REHEARSE_ROUND;
	bool plain = r->program_fd < 0 || turn != 1;
	struct pollfd port = { .fd = a->port_fd, .events = POLLIN };
	char words[64]; /* where, what, which file, and where the program is */
	int n = snprintf(words, sizeof(words), "/%c%s%c%d%cPATH=/proc/self%s", 0,
			 plain ? "exe" : r->program, 0, a->greeted && plain ? (int)r->times : -1, 0,
			 plain ? "" : "/fd");

	if (turn == 0)
		r->began_ns = now_ns();
	if (!r->times++)
		r->first_ns = r->began_ns;
	r->speaking = true;
	say(a, VM_WORDS, words, (size_t)n + 1);
	say(a, VM_START, &start, sizeof(start));
	say(a, VM_EOF, NULL, 0);
	streams_take_all(a);
	r->speaking = false;
	if (turn == REHEARSE_ROUND - 1) {
		poll(&port, 1, STOP_MS);
		rehearse_stop(a);
	}
}

void rehearse_heard(struct agent *a)
{
	struct rehearsal *r = &a->rehearsal;
	uint64_t took_ns;

	if (a->jobs[0].active || r->times % REHEARSE_ROUND != REHEARSE_ROUND - 1)
		return;
	took_ns = now_ns() - r->began_ns;
	r->vain = r->best_ns && took_ns >= r->best_ns - r->best_ns / 16 ? r->vain + 1 : 0;
	if (!r->best_ns || took_ns < r->best_ns)
		r->best_ns = took_ns;
	if (r->pause_ms || r->vain == VAIN_ROUNDS || now_ns() - r->first_ns > ALL_NS)
		r->pause_ms = r->pause_ms ? 2 * r->pause_ms : FIRST_PAUSE_MS;
}

void rehearse_stop(struct agent *a)
{
	struct job *j = &a->jobs[0];

	if (!j->active)
		return;
	if (!j->exited && kill(j->pid, SIGKILL) == 0)
		waitpid(j->pid, NULL, 0);
	job_clear(a, 0);
	job_prepare(a);
}

static void make_program(struct rehearsal *r)
{
	r->program_fd = memfd_create("program", MFD_CLOEXEC);
	if (r->program_fd >= 0 &&
	    (write(r->program_fd, &program, sizeof(program)) != sizeof(program) ||
	     fchmod(r->program_fd, 0555) < 0)) {
		close(r->program_fd);
		r->program_fd = -1;
	}
	snprintf(r->program, sizeof(r->program), "%d", r->program_fd);
}

void rehearse_in_template(struct agent *a)
{
	struct rehearsal *r = &a->rehearsal;
	int status = 0;

	make_program(r);
	a->setup.uid = a->setup.gid = TEMPLATE_USER;
	for (int i = 0; i < TEMPLATE_TIMES; i++) {
		job_prepare(a);
		rehearse(a);
		if (!a->jobs[0].active)
			continue;
		if (waitpid(a->jobs[0].pid, &status, 0) < 0)
			break;
		a->jobs[0].exited = true;
		streams_next(a);
		streams_close_spent(a);
		if (status && r->program_fd >= 0) { /* this libc is no loader */
			close(r->program_fd);
			r->program_fd = -1;
		}
	}
	a->setup.uid = a->setup.gid = 0;
	*r = (struct rehearsal){ .program_fd = r->program_fd };
	snprintf(r->program, sizeof(r->program), "%d", r->program_fd);
}

/* The n-th file of a directory, open; -1: it has fewer, and n is less by those that it has. */
static int open_nth(const char *path, int *n)
{
	char list[LIST_BYTES] __attribute__((aligned(8)));
	int dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC), fd = -1;
	long got = dir < 0 ? 0 : syscall(SYS_getdents64, dir, list, sizeof(list));
	const struct dirent64 *entry;

	for (long at = 0; at < got && fd < 0; at += entry->d_reclen) {
		entry = (const struct dirent64 *)(const void *)(list + at);
		if (entry->d_type == DT_REG && (*n)-- == 0)
			fd = openat(dir, entry->d_name,
				    O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	}
	if (dir >= 0)
		close(dir);
	return fd;
}

/* Another file of the root each time, and one that the template has not looked at (warm.c); where
 * there are no more, or n is negative, the shell. */
static int open_file(int n)
{
	static const char *const dirs[] = { "/usr/lib/x86_64-linux-gnu", "/usr/lib", "/lib",
					    "/etc" };
	int fd = -1;

	for (size_t i = 0; i < sizeof(dirs) / sizeof(dirs[0]) && fd < 0 && n >= 0; i++)
		fd = open_nth(dirs[i], &n);
	return fd < 0 ? open("/bin/sh", O_RDONLY | O_NONBLOCK | O_CLOEXEC) : fd;
}

/* What a loader and a libc do first: a file of the root is opened and mapped where programs lie,
 * its pages are read and written, and something is sent. */
int rehearse_main(const char *which)
{
	int fd = open_file(which ? atoi(which) : -1);
	static char head[FILE_BYTES];
	char *pages = MAP_FAILED;
	size_t bytes = PAGE;
	struct stat st;

	/* what was not looked up yet in the layer above the root: a directory of a command's PATH
	 * may not be there */
	snprintf(head, sizeof(head), "/.%d", getpid());
	if (access(head, X_OK) == 0)
		return 1;
	if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode)) {
		/* it may be in memory: most are not */
		posix_fadvise(fd, 0, FILE_BYTES, POSIX_FADV_DONTNEED);
		bytes = st.st_size >= 2 * PAGE ? 2 * PAGE : PAGE;
		if (read(fd, head, sizeof(head)) > 0)
			pages = mmap((void *)FILE_AT, bytes, PROT_READ | PROT_WRITE,
				     MAP_PRIVATE | MAP_FIXED_NOREPLACE, fd, 0);
	}
	if (pages != MAP_FAILED) {
		((volatile char *)pages)[bytes - PAGE] = ((volatile char *)pages)[0];
		mprotect(pages, bytes, PROT_READ);
	}
	if (fd >= 0 && fgetxattr(fd, "security.capability", head, sizeof(head)) >= 0)
		head[0] = '\0'; /* it has some: nothing to us */
	return write(1, ".", 1) == 1 && write(2, ".", 1) == 1 ? 0 : 1;
}
