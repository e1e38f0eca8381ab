/* ward-gvisor: starts gVisor inside a native sandbox, and the command inside gVisor. Its places in
 * the sandbox, what its roles share. */
#ifndef WARD_GVISOR_GVISOR_H
#define WARD_GVISOR_GVISOR_H

#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"

/* In the native sandbox. */
#define GVISOR_RUNSC "/.ward/runsc"
#define GVISOR_SELF "/.ward/ward-gvisor" /* inside the inner runtime too */
#define GVISOR_DIR "/.ward/gvisor"       /* a tmpfs of the runner's own */
#define GVISOR_STATE GVISOR_DIR "/state" /* runsc's */
#define GVISOR_BUNDLE GVISOR_DIR "/bundle"
#define GVISOR_JAIL                                                                                \
	GVISOR_DIR                                                                                 \
	"/jail" /* the root of a process of gVisor's; mounted in a mount namespace of its own */
#define GVISOR_ROOT GVISOR_JAIL "/root" /* what its gofer serves */
#define GVISOR_CONTROL                                                                             \
	GVISOR_DIR                                                                                 \
	"/control" /* the socket of gVisor's kernel, where the runner started it by itself */
#define GVISOR_PID GVISOR_DIR "/pid"   /* of runsc-sandbox */
#define GVISOR_MASK GVISOR_DIR "/mask" /* an empty directory */
#define GVISOR_DEV GVISOR_DIR "/dev"   /* and one that has nothing but an empty shm */
#define GVISOR_UP GVISOR_DIR "/up"     /* is there once the first command has begun */
#define GVISOR_START GVISOR_DIR "/start"
#define GVISOR_IMAGE "/.ward/image" /* the checkpoint that a sandbox goes on from */
/* Inside and outside of gVisor. */
#define GVISOR_START_INSIDE "/.ward/start" /* read-only */
#define GVISOR_IO "/.ward/io"              /* a small tmpfs that the command may fill */
#define GVISOR_SHM "/dev/shm"
#define GVISOR_NAME "box" /* of the container */
/* SIGSTKFLT, which nothing sends (runsc knows no real-time signals): the client of an exec is gone,
 * its command shall be, too */
#define GVISOR_END 16

/* A command as a file in GVISOR_START tells it to the role `enter`: any bytes, which no JSON could
 * carry. */
struct start {
	uint32_t uid, gid, argc, envc;
	const char *cwd;
	char **argv, **envp; /* NULL-terminated; owned, what they point to is not */
};

/* Appends the file's bytes. */
void start_write(const struct start *s, struct buf *out);
/* Takes them apart; the texts stay where they are. A pure function. -EINVAL: they are no such file;
 * -ENOMEM. */
must_check int start_parse(const char *bytes, size_t n, struct start *ret_start);
void start_free(struct start *s);

/* How a command ended, as `enter` tells it: what of the two is meant by WIFSIGNALED is lost in an
 * exit status. */
enum command_report { REPORT_NOTHING, REPORT_BEGUN, REPORT_EXIT, REPORT_SIGNAL };
/* A pure function. *ret_value: the status or the signal. */
enum command_report command_report_parse(const char *bytes, size_t n, int *ret_value);

#define CHECKPOINT_DONE "warddone" /* the end of a checkpoint that is whole; state/checkpoint.h */

/* Roles; each returns the exit status of the process. */
int gvisor_run(int argc, char **argv);
int gvisor_exec(int argc, char **argv);
int gvisor_enter(int argc, char **argv);
/* Inside the inner runtime: waits until it is ended, for a sandbox without a command of its own. */
int gvisor_idle(int argc, char **argv);
int gvisor_checkpoint(int argc, char **argv);
int gvisor_restore(int argc, char **argv);
int gvisor_streams(int argc, char **argv);
/* The role `run` with a checkpoint, -1: none, which it takes. */
int gvisor_run_from(int image_fd, int argc, char **argv);
/* Until the first command has begun. -ETIMEDOUT, said on standard error. */
must_check int gvisor_wait_for_kernel(void);

/* Which runsc it is and what it shall do. */
struct gvisor_way {
	const char *platform, *option; /* its name; one more option of this version */
	/* by `runsc run`: the inside of this version is not known */
	bool whole;
	/* without a network: gVisor's own, which has its loopback and nothing else, so that
	 * checkpoints are possible */
	bool alone;
	/* alone: goes on from this checkpoint instead of starting a command; -1: none */
	int image_fd;
	/* with a checkpoint: where its command reported long ago, under the same name, that it had
	 * begun */
	int report_fd;
	uint64_t file_bytes; /* the longest file that may be written; 0: any */
	uint64_t pids;       /* the most processes and threads inside the inner runtime; 0: any */
	/* the size of a /dev/shm of gVisor's own; 0: it is the sandbox's */
	uint64_t shm_bytes;
};

/* Makes the directories in GVISOR_DIR. */
must_check int gvisor_make_dirs(void);
/* Becomes root of a user namespace and makes the bundle; where runsc is to be started as a whole,
 * also a mount namespace with the tree. Says on standard error what is wrong: -errno. */
must_check int gvisor_place(const struct gvisor_way *way, char *const *binds, size_t count,
			    bool terminal);
/* The tree that the gofer serves, at GVISOR_ROOT, which exists. The same. */
must_check int gvisor_make_tree(void);
/* Makes the process root of a user namespace, and so able to read every file of the agent's. The
 * same. */
must_check int gvisor_own_files(void);
/* The calling process is in the jail and may become the program: the descriptor by which that says
 * that it needs no /proc any more, or -errno. */
must_check int jail_kernel(bool traces);
must_check int jail_gofer(void);

/* Starts gVisor's kernel and its gofer with so many shared directories, and the first command.
 * *ret_pid: the kernel's. -errno, said on standard error. */
must_check int direct_start(const struct gvisor_way *way, size_t binds, pid_t *ret_pid);
/* The kernel waits without end for a gofer that is killed while the two connect (seen with
 * 20240729). Whether the gofer has ended, and whether so long ago that the kernel will not notice.
 */
bool direct_gofer_is_dead(void);
bool direct_is_broken(void);
/* Until fd can be read. -EPIPE: nothing will come, as direct_is_broken() says. */
must_check int direct_wait_readable(int fd);

/* What the kernel answers. */
#define ANSWER_MAX (1 << 20) /* a refusal of a checkpoint shows half of the kernel */
struct answer {
	bool success;
	char error[256];
	int64_t result; /* -1: no number */
};
/* A pure function. -EAGAIN: that is not all of it; -EINVAL: it is no answer. */
must_check int answer_parse(const char *bytes, size_t n, struct answer *ret_answer);

/* How many threads an answer to containerManager.Processes tells of; the answer is whole. A pure
 * function. */
uint64_t answer_count_threads(const char *bytes, size_t n);

/* Calls of the kernel: -errno; -EREMOTEIO: it refused, the answer says why. */
must_check int control_listen(void);
must_check int control_start(struct answer *ret_answer);
/* Starts a role, `enter` with a name or another, inside the inner runtime with these 0-2: its pid
 * there. */
must_check int control_exec(const char *role, const char *name, const int stdio[3],
			    struct answer *ret_answer);
/* Until that process has ended: its status as of wait(2). Signals that come meanwhile, all of which
 * are blocked, are passed to it. */
must_check int control_wait(pid_t pid, int *ret_status);
must_check int control_signal(pid_t pid, int sig);
/* A loopback in a kernel that has its own network. */
must_check int control_loopback(struct answer *ret_answer);
/* How many processes and threads there are. */
must_check int control_count(uint64_t *ret_count);
/* Every process stands still, or goes on. */
must_check int control_pause(bool pause);
/* The kernel writes all of itself into fd, and goes on (unless it stands still); or it becomes what
 * fd, a file, begins with, and that goes on; device_fd: what its platform needs, -1: nothing. */
must_check int control_checkpoint(int fd, struct answer *ret_answer);
must_check int control_restore(int fd, int device_fd, struct answer *ret_answer);

/* Directories into a checkpoint and back (trees.c). -errno, said on standard error by the first
 * alone. */
must_check int trees_send(int out_fd, char *const *paths, size_t count, uint64_t *ret_bytes);
must_check int trees_take(int in_fd, char *const *paths, size_t count);

/* Puts the command into GVISOR_START under a name that no other process has; name gets it.
 * *ret_report_fd: the file in which it will report how it ended, -1: there is none. -errno, printed
 * on standard error. */
must_check int gvisor_tell(char **argv, char *name, size_t n, int *ret_report_fd);
/* What the command has reported, as far as it has come. */
enum command_report gvisor_report(int fd, int *ret_value);
/* Removes the command's file, and what may be left of the other. */
void gvisor_forget(const char *name);
/* Ends this process as the command ended. */
int gvisor_end_like(enum command_report report, int value);

/* Where 0, 1 or 2 is a regular file: a pipe in its place and a process that moves the bytes,
 * because gVisor writes to such a file from its beginning, whatever was written before. */
struct pumps {
	pid_t pids[3];
	size_t count;
};
must_check int pumps_start(struct pumps *p);
/* Waits until everything is written. */
void pumps_end(struct pumps *p);

/* One line on standard error. */
void gvisor_say(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
