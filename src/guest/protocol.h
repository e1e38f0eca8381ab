/* What the supervisor and ward-init say to each other over the control socket: one packet a message. */
#ifndef WARD_GUEST_PROTOCOL_H
#define WARD_GUEST_PROTOCOL_H

#include <stdint.h>

enum guest_op {
	GUEST_READY = 1,	/* init -> supervisor: the command was started; a = its pid inside */
	GUEST_FAILED,		/* a = errno of exec, b = 126 or 127 */
	GUEST_EXITED,		/* a = wait status of the command */
	GUEST_STOPPED,		/* the command on a terminal was stopped; a = the signal */
	GUEST_SIGNAL = 64,	/* supervisor -> init: send signal a to the command's process group */
	GUEST_STOP,		/* stop every process */
	GUEST_CONTINUE,		/* let them go on */
	GUEST_END		/* kill every process and end */
};

struct guest_message {
	uint32_t op;
	int32_t a, b;
};

#define GUEST_CONTROL_FD 3	/* in ward-init */

/* What the keeper is told of the operator's terminal: how it must be when the one who tells is gone. One byte alone: all is
 * well. */
struct guest_terminal {
	uint32_t keep;		/* 0: nothing is to be put back */
	uint32_t reset_len;
	unsigned char modes[60];	/* struct termios as the kernel has it, and room */
	char reset[252];	/* sequences that end what is in force on the screen */
};

#endif
