/* ward-gvisor: starts gVisor inside a native sandbox, and the command inside gVisor. Its places in the sandbox, what its roles share. */
#ifndef WARD_GVISOR_GVISOR_H
#define WARD_GVISOR_GVISOR_H

#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"

/* In the native sandbox. */
#define GVISOR_RUNSC "/.ward/runsc"
#define GVISOR_SELF "/.ward/ward-gvisor"	/* behind the wall too */
#define GVISOR_DIR "/.ward/gvisor"		/* a tmpfs of the runner's own */
#define GVISOR_STATE GVISOR_DIR "/state"	/* runsc's */
#define GVISOR_BUNDLE GVISOR_DIR "/bundle"
#define GVISOR_ROOT GVISOR_DIR "/root"		/* what its gofer serves; mounted in the runner's mount namespace alone */
#define GVISOR_PID GVISOR_DIR "/pid"		/* of runsc-sandbox */
#define GVISOR_MASK GVISOR_DIR "/mask"		/* an empty directory */
#define GVISOR_UP GVISOR_DIR "/up"		/* is there once the first command has begun */
#define GVISOR_START GVISOR_DIR "/start"
/* On both sides of the wall. */
#define GVISOR_START_INSIDE "/.ward/start"	/* read-only */
#define GVISOR_IO "/.ward/io"			/* a small tmpfs that the command may fill */
#define GVISOR_NAME "box"			/* of the container */
#define GVISOR_END 16				/* SIGSTKFLT, which nothing sends (runsc knows no real-time signals): the client of an exec is gone, its command shall be, too */

/* A command as a file in GVISOR_START tells it to the role `enter`: any bytes, which no JSON could carry. */
struct start {
	uint32_t uid, gid, argc, envc;
	const char *cwd;
	char **argv, **envp;	/* NULL-terminated; owned, what they point to is not */
};

/* Appends the file's bytes. */
void start_write(const struct start *s, struct buf *out);
/* Takes them apart; the texts stay where they are. A pure function. -EINVAL: they are no such file; -ENOMEM. */
must_check int start_parse(const char *bytes, size_t n, struct start *ret_start);
void start_free(struct start *s);

/* How a command ended, as `enter` tells it: what of the two is meant by WIFSIGNALED is lost in an exit status. */
enum told { TOLD_NOTHING, TOLD_BEGUN, TOLD_EXIT, TOLD_SIGNAL };
/* A pure function. *ret_value: the status or the signal. */
enum told told_parse(const char *bytes, size_t n, int *ret_value);

/* Roles; each returns the exit status of the process. */
int gvisor_run(int argc, char **argv);
int gvisor_exec(int argc, char **argv);
int gvisor_enter(int argc, char **argv);
/* Behind the wall: waits until it is ended, for a sandbox without a command of its own. */
int gvisor_idle(int argc, char **argv);

/* Makes the directories in GVISOR_DIR. */
must_check int gvisor_make_dirs(void);
/* Makes namespaces, the root that the gofer serves, and the bundle. Says on standard error what is wrong: -errno. */
must_check int gvisor_place(char *const *binds, size_t count, bool terminal);

/* Puts the command into GVISOR_START under a name that nobody else has; name gets it. *ret_told_fd: the file in which it will be told how it ended, -1: there is none. -errno, said on standard error. */
must_check int gvisor_tell(char **argv, char *name, size_t n, int *ret_told_fd);
/* What the command told, as far as it has come. */
enum told gvisor_told(int fd, int *ret_value);
/* Removes the command's file, and what may be left of the other. */
void gvisor_forget(const char *name);
/* Ends this process as the command ended. */
int gvisor_end_like(enum told told, int value);

/* Where 0, 1 or 2 is a regular file: a pipe in its place and a process that moves the bytes, because gVisor writes to such a file from its
 * beginning, whatever was written before. */
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
