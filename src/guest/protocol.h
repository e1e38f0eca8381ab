/* What the supervisor and ward-init say to each other over the control socket: one packet a message. */
#ifndef WARD_GUEST_PROTOCOL_H
#define WARD_GUEST_PROTOCOL_H

#include <stdint.h>

enum guest_op {
	GUEST_READY = 1,	/* init -> supervisor: the command was started; a = its pid inside */
	GUEST_FAILED,		/* a = errno, b = 126 or 127: exec; 125: the directory to start in */
	GUEST_EXITED,		/* a = wait status of the command */
	GUEST_STOPPED,		/* the command on a terminal was stopped; a = the signal */
	GUEST_SIGNAL = 64,	/* supervisor -> init: send signal a to the command's process group */
	GUEST_STOP,		/* stop every process */
	GUEST_CONTINUE,		/* let them go on */
	GUEST_END,		/* kill every process and end */
	GUEST_EXEC		/* one more command: a = count of its words, b = of its variables; behind the message
				 * its directory ("": init's own), words and variables, each ended by NUL; 0-2 by SCM_RIGHTS */
};

/* tag says which command is meant: 0 is the sandbox's own, others are the supervisor's to choose */
struct guest_message {
	uint32_t op;
	int32_t a, b;
	uint32_t tag;
};

#define GUEST_CONTROL_FD 3	/* in ward-init */
#define GUEST_EXECS_MAX 64	/* commands at one time beside the sandbox's own */
#define GUEST_PACKET_MAX 131072	/* a message with what stands behind it */

/* What the keeper is told of the operator's terminal: how it must be when the one who tells is gone. One byte alone: all is
 * well. */
struct guest_terminal {
	uint32_t keep;		/* 0: nothing is to be put back */
	uint32_t reset_len;
	unsigned char modes[60];	/* struct termios as the kernel has it, and room */
	char reset[252];	/* sequences that end what is in force on the screen */
};

#endif
