/* Between ward-vm's server, which has the guest's port, and those whose commands it has started. */
#ifndef WARD_VM_PARTY_H
#define WARD_VM_PARTY_H

#include "vm/serve.h"
#include "vm/session.h"

#define PARTY_MAGIC 0x31707677 /* "wvp1" */
#define PARTY_PENDING 16       /* connections that have not said yet what they want */

/* One packet a message. */
enum party_op {
	/* to the server: start; four descriptors: 0-2, and a memfd with the words */
	PARTY_START = 1,
	PARTY_SIGNAL,    /* a = the signal */
	PARTY_RESIZE,    /* a = rows, b = columns */
	PARTY_EXIT = 64, /* from the server, the last: a = wait status */
	PARTY_STOPPED,   /* a = the signal */
	PARTY_ERROR      /* the last: struct ward_err behind it */
};

struct party_message {
	uint32_t magic, op;
	int32_t a, b;
	struct vm_start start;
};

/* Whether what a client sent is a message. A pure function. */
bool party_check(const void *bytes, size_t n, struct party_message *ret);

/* Who is behind a channel. */
struct party {
	unsigned channel; /* 0: this one is free */
	int fds[VM_STREAMS];
	unsigned types[VM_STREAMS]; /* of file, as in st_mode */
	int sock_fd;                /* -1: no client (a copy of a tree) */
	bool readable;              /* poll() said so of fds[0] */
	bool typed_ahead;           /* fds[0] is a terminal that nothing was read from yet */
	bool gone;                  /* the other end of sock_fd is closed */
};

/* Puts a command's directory, words and variables behind each other; the caller frees. NULL: out of
 * memory. */
char *party_words(const char *cwd, int argc, char **argv, char **envp, size_t *ret_len,
		  struct vm_start *start);
/* Which of the descriptors are terminals, and how large. */
void party_terminals(const int *fds, struct vm_start *start);

/* Takes fds, which may be used until party_end(); reads their kinds. */
void party_begin(struct party *p, unsigned channel, const int *fds, int sock_fd,
		 struct vm_channel *c);
/* Moves what waits in the channel's streams to the party's descriptors, as far as they take it. */
void party_flush(struct party *p, struct vm_channel *c);
/* Whether all that the command wrote has been handed over. */
bool party_flushed(const struct vm_channel *c);
/* Which descriptor a stream goes to. */
int party_out_fd(const struct party *p, const struct vm_channel *c, unsigned stream);
/* Says how it ended, closes everything. */
void party_end(struct party *p, const struct party_message *last, const struct ward_err *error);
/* Sends a message; false: the peer is gone. */
bool party_say(int sock_fd, enum party_op op, int a);

#endif
