/*
 * What ward-ask inside (guest/ask.c) and the supervisor say to each other: one packet a message
 * over a SOCK_SEQPACKET socket inside, ASK_SOCKET. Any program inside may connect and write packets
 * of its own: all that a request can do is to be shown to a person.
 */
#ifndef WARD_PROTOCOL_ASK_H
#define WARD_PROTOCOL_ASK_H

#include <stdint.h>

#define ASK_DIR "/.ward/ask"
#define ASK_SOCKET ASK_DIR "/socket"
#define ASK_MAGIC 0x31716177 /* "waq1" */
#define ASK_MAX 4096         /* a message, in both directions */
#define ASK_WORDS_MAX 16

enum ask_op {
	/* ward-ask -> supervisor: its words behind its name, each ended by NUL; a: count of them */
	ASK_WORDS = 1,
	/* supervisor -> ward-ask: text for standard output or error, any number of them */
	ASK_OUT,
	ASK_ERR,
	ASK_END /* a: the exit status */
};

struct ask_message {
	uint32_t magic, op;
	int32_t a, b;
};

/* Exit statuses. */
enum ask_status { ASK_ALLOWED = 0, ASK_DENIED = 1, ASK_USAGE = 2, ASK_FAILED = 125 };

#endif
