/* ward-vm-init: pid 1 of the vm engine's guest. It boots the system, then does what ward-vm tells
 * it over virtio-serial. */
#ifndef WARD_VM_GUEST_AGENT_H
#define WARD_VM_GUEST_AGENT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "vm/wire.h"

/* One command, or one copy, of a channel. */
struct job {
	bool active; /* false: the channel is free, or its words are still coming */
	/* it was begun in this turn of the loop: it cannot have said anything */
	bool fresh;
	bool exited, terminal;
	pid_t pid;
	int status;
	/* where the leader of a terminal's session says that its command was stopped */
	int stopped_fd;
	int in_fd;               /* where its standard input's bytes go; -1: closed */
	int out_fds[VM_STREAMS]; /* what it writes: [0] its terminal, [1], [2] */
	char *words;
	size_t words_len, words_room;
	uint8_t *pending; /* bytes for in_fd that it has not taken yet: VM_WINDOW_BYTES */
	size_t pending_at, pending_len;
	uint32_t owed;    /* bytes of standard input that the host may be given credit for */
	bool in_eof;      /* the host has no more */
	bool tell_broken; /* standard input has no reader: to be reported */
	uint32_t credit[VM_STREAMS];
};

/* The inner ends of a command's streams. */
struct ends {
	int inner[VM_STREAMS]; /* the child's 0-2 */
	int stopped[2];        /* where the session's leader says that its command was stopped */
};

#define SPARE_FEW 256 /* words and variables that need no memory of their own */

/* A process that waits for a command: spare.c */
struct spare {
	pid_t pid; /* 0: there is none */
	int state, go;
	struct ends ends;
	int outer[VM_STREAMS];
	/* what it executes lies at the same addresses each time: rehearse.c */
	bool settled;
	struct vm_start start; /* of the command that it became, with what follows */
	char *words, **list, *few[SPARE_FEW];
	size_t words_room;
};

struct agent {
	int port_fd, signal_fd;
	int cgroup_fd; /* where commands live; -1: this kernel has none */
	/* processes that the kernel had killed there for memory when VM_SETUP came */
	unsigned long long kills;
	int null_fd;
	int manifest_fd; /* memfd: what was put into trees */
	int disk_fd;     /* over which trees go; -1: there is none */
	struct vm_setup_frame setup;
	struct job jobs[VM_CHANNELS]; /* [0]: rehearse.c */
	unsigned channels;            /* those from this one on are free and not polled */
	char *spare_words; /* JOB_SPARE_BYTES for the words of a command; NULL: one has them */
	struct spare spare;
	unsigned next; /* which channel was served last */
	/* at their end, and closed when that has been reported: a pipe takes longer to go than the
	 * rest of it */
	int spent_fds[2 * VM_STREAMS];
	unsigned spent;
	bool quiescing, ending; /* ending: it was asked to quiesce */
	bool childless;         /* no process of a user's is left */
	bool signalled;         /* a child has ended: not all of them may be reaped */
	bool greeted, used;     /* VM_SETUP has come; a command has been started */
	struct rehearsal {
		unsigned times, vain; /* in all; how many rounds in a row were no faster */
		uint64_t began_ns, first_ns, best_ns;
		int pause_ms; /* until the next; 0: it is getting faster */
		/* what is executed in turns with this program itself; -1: nothing */
		int program_fd;
		char program[16]; /* its name in /proc/self/fd */
		bool speaking;    /* the frames that are taken are its own */
	} rehearsal;
	bool echoing;
	uint8_t echo[VM_ECHO_MAX]; /* to be said again */
	size_t echo_len;
	int error_code; /* 0: nothing to tell */
	unsigned error_channel;
	uint8_t in[VM_FRAME_MAX];
	size_t in_len;
	uint8_t out[VM_FRAME_MAX];
	size_t out_at, out_len;
};

/* ---- boot.c: everything until READY ---- */

/* Modules, root, devices, network; *a is ready to serve. Does not return where that fails: there is
 * no process to go on. */
void boot_all(struct agent *a);
/* Says why the guest cannot go on, on the console, and turns it off. */
_Noreturn void boot_die(const char *what);
/* ---- warm.c ---- */

/* Reads what nearly every command needs, so that it is in memory when a snapshot is taken. */
void warm_cache(void);
/* ---- net.c ---- */

/* Sets loopback up, and eth0 where words ("ADDRESS/PREFIX,GATEWAY,DNS") are given. Returns 0 or
 * -errno. */
int net_set_up(const char *words);
/* ---- time.c ---- */

/* The clock, and the kernel's random numbers, of this guest and no other's that was cloned from the
 * same memory. */
void time_set(const struct vm_time *t);
/* ---- limits.c ---- */

/* A cgroup for commands, seen from nowhere. Sets a->cgroup_fd. */
void limits_open(struct agent *a);
/* What VM_SETUP says of it. */
void limits_apply(struct agent *a);
/* Whether the kernel has killed commands since, because there was no memory left. */
bool limits_spent(const struct agent *a);
/* No capability and no group for whatever pid 1 will start; false where that fails. */
bool limits_seal(void);
/* fork(), of a child in the cgroup of commands or beside it. */
pid_t limits_fork(const struct agent *a, bool in_cgroup);
/* In the child: limits, ids, no capability; returns 0 or -errno. Raw: nothing else in this memory
 * is touched. */
long limits_enter(const struct agent *a);
/* ---- job.c ---- */

#define JOB_SPARE_BYTES 16384
#define JOB_NOT_STARTED 125

/* Starts what VM_START says with the words that came before. */
void job_start(struct agent *a, unsigned channel, const struct vm_start *s);
/* Makes what the next command will need, while there is none. */
void job_prepare(struct agent *a);
/* A pipe of that stream: the command's end, and ours. Returns 0 or -errno. */
int job_make_pipe(unsigned stream, int *ret_inner, int *ret_outer);
/* In the child: these are its 0-2 and it leads a session; false where that fails. */
bool job_take_ends(const struct ends *ends);
/* In the child: executes, or says why not. Raw. */
_Noreturn void job_become(const struct agent *a, const char *words, const struct vm_start *s,
			  char **list);
/* Makes room for n bytes of words; false: out of memory. */
bool job_make_room(struct agent *a, unsigned channel, size_t n);
/* Frees all that a channel had. */
void job_clear(struct agent *a, unsigned channel);
/* Tells the host why; a job that never began ends with this code. */
void job_fail(struct agent *a, unsigned channel, int code);
/* ---- spare.c ---- */

/* Makes one, where there is none. Returns 0 or -errno. */
int spare_make(struct agent *a);
/* Gives it, or a new one, the job's command and words. Only while no process of a user's is there.
 * Returns its pid or -errno. */
pid_t spare_start(struct agent *a, struct job *j, const struct vm_start *s);
/* It has ended, before it was given anything. */
void spare_lost(struct agent *a);
/* Ends it, where there is one. */
void spare_drop(struct agent *a);
/* ---- rehearse.c ---- */

/* so many are one of each kind; after the first all of them lie where the first lay, or each would
 * have to be translated anew */
#define REHEARSE_ROUND 3

/* When a guest that has nothing to do should start something of its own; -1: never. */
int rehearse_in_ms(const struct agent *a);
void rehearse(struct agent *a);
/* It has said something; or that it has ended, and then it was this fast. */
void rehearse_heard(struct agent *a);
/* Ends it, where there is one: a command begins, and has what it may use for itself. */
void rehearse_stop(struct agent *a);
/* Before READY: what is done once in a kernel's life is done in the template, not in each clone. */
void rehearse_in_template(struct agent *a);
/* What is rehearsed: the whole of the program where it is not pid 1. which: a number in words, the
 * file of the root that is looked at; negative, or NULL: the shell. */
int rehearse_main(const char *which);
/* ---- streams.c ---- */

/* Takes the host's frames that stand in a->in; one that is not complete stays there. */
void streams_take_all(struct agent *a);
/* Makes the next frame in a->out, behind those that are there: room for one with VM_DATA_MAX bytes.
 * False when there is nothing to say. */
bool streams_next(struct agent *a);
/* Closes what has come to its end. */
void streams_close_spent(struct agent *a);
/* Writes what waits for a job's standard input. */
void streams_feed(struct job *j);
/* ---- tree_in.c, tree_out.c: in a child; return an exit code ---- */

/* paths: count of them, each ended by NUL. */
int tree_in_main(const struct agent *a, const char *paths, size_t count, int manifest_fd,
		 int disk_fd);
int tree_out_main(const char *paths, size_t count, int manifest_fd, int disk_fd);

#endif
