/*
 * An emulated machine translates what it runs through, and a clone begins with nothing translated: its first command takes ten times what the next one does. So a guest that has been greeted and is then left alone, before any command, starts one of its
 * own a few times: this very program, which does nothing where it is not pid 1. It goes through every step of a command (job.c), in channel 0, about which nobody is told anything. In: a guest that nobody asks for anything. Out: the same guest. No program
 * of the root is run; one of its files is looked into, because that is how every command begins. A command that comes meanwhile goes on with what is translated by then.
 */
#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "vm/guest/agent.h"

#define TIMES 3
#define PAGE 4096

static const char words[] = "/\0exe\0PATH=/proc/self";	/* where, what, and where that is */

bool rehearse_is_due(const struct agent *a)
{
	return a->greeted && !a->used && a->rehearsed < TIMES && a->childless && !a->jobs[0].active && !a->quiescing && !a->out_len;
}

/* What the kernel does with a program's file: reads its head, maps it, asks for its rights, and has pages of it read and written. */
static void look_into(const char *path)
{
	char head[64];
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	char *pages = fd < 0 || read(fd, head, sizeof(head)) < 0 ? MAP_FAILED : mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
	struct stat st;

	if (pages != MAP_FAILED && fstat(fd, &st) == 0 && st.st_size >= 2 * PAGE)
		((volatile char *)pages)[PAGE] = ((volatile char *)pages)[0];
	if (pages != MAP_FAILED)
		munmap(pages, 2 * PAGE);
	if (fd >= 0 && fgetxattr(fd, "security.capability", head, sizeof(head)) >= 0)
		head[0] = '\0';	/* it has some: nothing to us */
	if (fd >= 0)
		close(fd);
}

static void hear(struct agent *a, enum vm_type type, const void *payload, size_t n)
{
	const struct vm_frame f = { .type = type, .payload = payload, .len = n };

	streams_take_about_job(a, &f);
}

void rehearse(struct agent *a)
{
	const struct vm_start start = { .kind = VM_RUN, .argc = 1, .envc = 1 };

	a->rehearsed++;
	look_into("/bin/sh");
	hear(a, VM_WORDS, words, sizeof(words));
	hear(a, VM_START, &start, sizeof(start));
	hear(a, VM_EOF, NULL, 0);
}

void rehearse_end(struct agent *a)
{
	struct job *j = &a->jobs[0];
	struct pollfd fds[] = { { .fd = j->out_fds[1], .events = POLLIN }, { .fd = j->out_fds[2], .events = POLLIN } };
	size_t before = a->out_len;

	poll(fds, 2, 0);
	while (a->out_len + VM_HEAD_BYTES + VM_DATA_MAX <= sizeof(a->out) && streams_say_about_job(a, 0))
		a->out_len = before;	/* to nobody */
	job_clear(j);
}
