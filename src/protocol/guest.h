/* What the supervisor and ward-init say to each other over the control socket: one packet a
 * message. */
#ifndef WARD_PROTOCOL_GUEST_H
#define WARD_PROTOCOL_GUEST_H

#include <stdint.h>

/* a real-time signal, from an inner runtime's runner to ward-init: its value is how many processes
 * and threads are inside the inner runtime */
#define GUEST_TELL 61
/* a signal by which an inner runtime's runner ends: what it ran was killed because its memory was
 * used up */
#define GUEST_SPENT 63
/* a real-time signal: those of one number come in the order in which they were queued */
#define GUEST_HOLD 62

enum guest_op {
	/* init -> supervisor: one more command was started; a = its pid inside. Of the first only
	 * if GUEST_ASK */
	GUEST_READY = 1,
	/* a = errno, b = 126 or 127: exec; 125: the directory to start in */
	GUEST_FAILED,
	GUEST_EXITED,  /* a = wait status of the command */
	GUEST_STOPPED, /* the command on a terminal was stopped; a = the signal */
	/* before GUEST_EXITED, in a container, where no process outside waits for ward-init: a =
	 * milliseconds of processors, b = KiB at most */
	GUEST_USED,
	/* after GUEST_COUNT: a = what the command, an inner runtime's runner, has sent with
	 * GUEST_TELL */
	GUEST_PIDS,
	/* supervisor -> init: send signal a to the command's process group */
	GUEST_SIGNAL = 64,
	/* stop every process; a = 1: have the command, an inner runtime's runner, hold what is
	 * behind it: GUEST_HOLD with the value 1 is queued for it */
	GUEST_STOP,
	GUEST_CONTINUE, /* let them go on; a = 1: the same with the value 0 */
	GUEST_END,      /* kill every process and end */
	/* whether the sandbox's own command was started: answered when it was, or could not be */
	GUEST_ASK,
	/* pass on what the command tells with GUEST_TELL; until then it is not listened to */
	GUEST_COUNT,
	/* as GUEST_EXEC, but ward-init's own code copies files: words "get" PATH, or "put" PATH
	 * NAME */
	GUEST_COPY,
	/* one more command: a = count of its words, b = of its variables; behind the message its
	 * directory ("": init's own), words and variables, each ended by NUL; 0-2 by SCM_RIGHTS */
	GUEST_EXEC,
	/* the same with two descriptors more: the directory, and the file that is executed,
	 * whatever the first word is */
	GUEST_EXEC_FILE
};

#define GUEST_FDS_MAX 5               /* with one message */
#define GUEST_TAG_COMMAND 0x80000000u /* in tags of GUEST_EXEC_FILE, which no others have */

/* tag says which command is meant: 0 is the sandbox's own, others are the supervisor's to choose */
struct guest_message {
	uint32_t op;
	int32_t a, b;
	uint32_t tag;
};

/* What ward-init in a container of a runtime gets before all other words. First its ids; with it,
 * by SCM_RIGHTS, descriptors through which it enters its cgroups. */
struct guest_join {
	uint32_t uid, gid;     /* inside */
	uint32_t cgroup_count; /* descriptors */
};

/* Then what it puts on. Behind it the system call filter; with it a file with texts: the directory,
 * the command's words, its variables, each ended by NUL (a runtime's JSON could not bring every
 * byte). */
#define GUEST_RLIMITS_MAX 16
#define GUEST_FILTER_MAX 1024
#define GUEST_CGROUPS_MAX 4

struct guest_setup {
	uint64_t signal_mask; /* for the command */
	uint32_t umask;
	uint32_t rlimit_count;
	uint32_t filter_len; /* instructions of 8 bytes */
	uint32_t word_count, variable_count;
	uint64_t text_len;
	struct {
		uint64_t resource, soft, hard;
	} rlimits[GUEST_RLIMITS_MAX];
};

#define GUEST_LOG_FD 4          /* in ward-outer: what the runtime says when it fails */
#define GUEST_CONTROL_FD 3      /* in ward-init */
#define GUEST_EXECS_MAX 64      /* commands at one time beside the sandbox's own */
#define GUEST_PACKET_MAX 131072 /* a message with what stands behind it */

/* Files on their way out of a sandbox, or into it: one record each, with the name behind it
 * (relative to what is copied, "" for that itself), then size bytes of a file's content or a link's
 * target. The last record is GUEST_COPY_END. */
#define GUEST_COPY_MAGIC 0x31706377 /* "wcp1" */
enum guest_copy_type {
	GUEST_COPY_DIR = 1,
	GUEST_COPY_FILE,
	GUEST_COPY_LINK,
	GUEST_COPY_ERROR,
	GUEST_COPY_END
};

struct guest_copy {
	uint32_t magic;
	uint16_t type;
	uint16_t mode;     /* permission bits */
	uint32_t name_len; /* at most GUEST_COPY_NAME_MAX */
	uint32_t error;    /* GUEST_COPY_ERROR: errno */
	uint64_t size;
	int64_t mtime_s;
};

#define GUEST_COPY_NAME_MAX 4095
#define GUEST_COPY_DEEP 200 /* directories within each other */

/* The keeper's messages about the operator's terminal: how it must be restored when the sender is
 * gone. One byte alone: all is well. */
struct guest_terminal {
	uint32_t keep; /* 0: nothing is to be put back */
	uint32_t reset_len;
	unsigned char modes[60]; /* struct termios as the kernel has it, and room */
	char reset[252];         /* sequences that end what is in force on the screen */
};

#endif
