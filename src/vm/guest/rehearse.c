/*
 * An emulated machine translates what it runs through, and a clone begins with nothing translated: its first command takes ten times what the next one does. So a guest that has been greeted and is then left alone, before any command, starts one of its
 * own, again and again until it is no longer getting faster: this very program, which is rehearse_main() where it is not pid 1. It goes through every step of a command (job.c, streams.c), in channel 0, about which nobody is told anything.
 * In: a guest that nobody asks for anything. Out: the same guest. No program of the root is run; one of its files is mapped, because that is how every command begins. A command that comes meanwhile ends it and goes on with what is translated by then.
 */
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

#include "vm/guest/agent.h"

#define TIMES 24		/* at most */
#define VAIN_TIMES 6		/* so often without being faster: that is how fast it is */
#define ALL_NS 400000000u	/* after so long it is left be */
#define TEMPLATE_TIMES 3
#define TEMPLATE_USER 65534	/* nobody's: who commands will be is not known there */
#define PAGE 4096
#define LOW_ADDRESS 0x400000	/* where programs lie that lie where they were linked for */

static const char words[] = "/\0exe\0PATH=/proc/self";	/* where, what, and where that is */

static uint64_t now_ns(void)
{
	struct timespec t = { 0 };

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

bool rehearse_is_due(const struct agent *a)
{
	const struct rehearsal *r = &a->rehearsal;

	return a->greeted && !a->used && a->childless && !a->jobs[0].active && !a->quiescing && !a->out_len && a->channels == 1 && r->times < TIMES && r->vain < VAIN_TIMES &&
	       (!r->times || now_ns() - r->first_ns < ALL_NS);
}

/* As a frame of the host's is taken: written, read again, heard. */
static void hear(struct agent *a, enum vm_type type, const void *payload, size_t n)
{
	static uint8_t bytes[VM_HEAD_BYTES + sizeof(words)];
	struct vm_frame f;

	if (wire_parse(bytes, wire_put(bytes, type, 1, 0, payload, n), false, &f) <= 0)
		return;
	f.channel = 0;
	streams_take_about_job(a, &f);
}

void rehearse(struct agent *a)
{
	const struct vm_start start = { .kind = VM_RUN, .argc = 1, .envc = 1 };
	struct rehearsal *r = &a->rehearsal;

	r->began_ns = now_ns();
	if (!r->times++)
		r->first_ns = r->began_ns;
	hear(a, VM_WORDS, words, sizeof(words));
	hear(a, VM_START, &start, sizeof(start));
	hear(a, VM_EOF, NULL, 0);
}

void rehearse_heard(struct agent *a)
{
	struct rehearsal *r = &a->rehearsal;
	uint64_t took_ns;

	if (a->jobs[0].active)
		return;
	took_ns = now_ns() - r->began_ns;
	r->vain = r->best_ns && took_ns >= r->best_ns - r->best_ns / 16 ? r->vain + 1 : 0;
	if (!r->best_ns || took_ns < r->best_ns)
		r->best_ns = took_ns;
}

void rehearse_stop(struct agent *a)
{
	struct job *j = &a->jobs[0];

	if (!j->active)
		return;
	if (!j->exited && kill(j->pid, SIGKILL) == 0)
		waitpid(j->pid, NULL, 0);
	job_clear(a, 0);
}

void rehearse_in_template(struct agent *a)
{
	int status;

	a->setup.uid = a->setup.gid = TEMPLATE_USER;
	for (int i = 0; i < TEMPLATE_TIMES; i++) {
		job_prepare(a);
		rehearse(a);
		if (!a->jobs[0].active || waitpid(a->jobs[0].pid, &status, 0) < 0)
			break;
		a->jobs[0].exited = true;
		streams_next(a);
		streams_close_spent(a);
	}
	a->setup.uid = a->setup.gid = 0;
	a->rehearsal = (struct rehearsal){ 0 };
}

/* What a loader and a libc do first: a file of the root is opened and mapped where programs lie, its pages are read and written, and something is said. */
int rehearse_main(void)
{
	int fd = open("/bin/sh", O_RDONLY | O_CLOEXEC);
	struct stat st;
	char head[64];
	char *pages = fd < 0 || read(fd, head, sizeof(head)) < 0 || fstat(fd, &st) < 0 || st.st_size < 2 * PAGE
			      ? MAP_FAILED
			      : mmap((void *)LOW_ADDRESS, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED_NOREPLACE, fd, 0);

	if (pages != MAP_FAILED) {
		((volatile char *)pages)[PAGE] = ((volatile char *)pages)[0];
		mprotect(pages, 2 * PAGE, PROT_READ);
	}
	if (fd >= 0 && fgetxattr(fd, "security.capability", head, sizeof(head)) >= 0)
		head[0] = '\0';	/* it has some: nothing to us */
	return write(1, ".", 1) == 1 && write(2, ".", 1) == 1 ? 0 : 1;
}
