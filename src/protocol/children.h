/* Between the supervisor and ward-children (src/cli/children): a socket of whole messages. */
#ifndef WARD_PROTOCOL_CHILDREN_H
#define WARD_PROTOCOL_CHILDREN_H

#include <stdint.h>

#define CHILDREN_PROGRAM "ward-children"
#define CHILDREN_FD_CONTROL 3 /* the supervisor's; when it is closed, all children end */
#define CHILDREN_FD_LISTEN 4  /* the socket that programs inside connect to */
#define CHILDREN_FD_POLICY 5  /* the parent's policy, a document in a memory file */

#define CHILDREN_TEXT 400

enum children_op {
	CHILDREN_STARTED = 1, /* object: the command */
	CHILDREN_REFUSED,     /* the same; why */
	CHILDREN_ENDED,       /* the same; run, code */
	CHILDREN_SENT,        /* object: the channel; from, to, code: bytes, digest */
	CHILDREN_NOT_SENT,    /* the same; why */
	CHILDREN_READY,       /* first; why: why it cannot begin */
};

/* To ward-children: a uint32_t. */
enum children_order { CHILDREN_HOLD = 1, CHILDREN_RELEASE };

/* From ward-children. Texts end by NUL. */
struct children_event {
	uint32_t op;
	uint32_t number; /* of the child, from 1 */
	uint32_t lost;   /* refusals before this one that were not reported */
	int32_t code;    /* the exit code */
	char run[24];    /* of the child; "": not known */
	char from[64], to[64], digest[72];
	char object[CHILDREN_TEXT], why[CHILDREN_TEXT];
};

#endif
