/* Shared by the control server's own files. */
#ifndef WARD_RUN_SERVE_INTERNAL_H
#define WARD_RUN_SERVE_INTERNAL_H

#include "base/terminal.h"
#include "control/control.h"
#include "run/serve.h"
#include "state/log.h"

struct serve_client {
	int fd;
	uint32_t tag;         /* of the command that it started and that runs; 0: none */
	uint64_t deadline_ms; /* when silence ends the connection */
	uint64_t number;      /* in the order of coming, from 1 */
	int stream_fd;        /* of one that is attached; -1: it is not */
	bool types;           /* its input is for the command */
	bool sized;           /* it has sent the size of its terminal */
	bool waits;           /* for the end of the sandbox */
	bool asks_secret;     /* and waits for ward-secrets */
	bool watches;         /* and waits for a change of the questions */
	uint32_t seen;        /* their state that it knows */
	bool gone;            /* to be dropped */
	uint32_t net_op;      /* that it waits for: enum control_op; 0: none */
	uint32_t net_what, net_from;
	uint64_t net_generation; /* of its change */
};

struct serve {
	struct box *box;         /* borrowed */
	struct box_entry *entry; /* borrowed */
	int listen_fd;
	/* what the command writes: a pipe, or its terminal's outer end; -1: it is closed */
	int output_fd;
	int slave_fd; /* of the terminal, so that it lasts; -1: none */
	int life_fd;  /* attached: its end is the sandbox's; borrowed; -1: none */
	bool terminal;
	bool net_only;    /* a run in the foreground: no command joins it */
	uint64_t owner;   /* number of the client whose input alone counts; 0: none */
	char typed[1024]; /* on its way to the terminal */
	size_t typed_len, typed_done;
	uint64_t last_number;
	uint32_t questions; /* number of their state, from 1 */
	/* looks at what the terminal shows, to answer what programs ask it */
	struct terminal filter;
	struct log log;
	struct serve_client clients[SERVE_CLIENTS_MAX];
	size_t client_count;
	uint32_t last_tag;
	uint32_t checkpoint_tag; /* of the command that makes a checkpoint now; 0: none */
};

/* Sends an answer with descriptors, which stay the caller's. A client that does not take it is
 * marked as gone. */
bool serve_send(struct serve_client *c, const void *bytes, size_t n, const int *fds,
		size_t fd_count);
void serve_answer(struct serve_client *c, enum control_op op, int32_t a, int32_t b);
void serve_refuse(struct serve_client *c, const struct ward_err *e);
/* Attached clients (serve_attach.c): joining, leaving, what the command wrote, what was typed, the
 * size of a terminal. */
void serve_attach(struct serve *s, struct serve_client *c, unsigned flags);
void serve_detach(struct serve *s, struct serve_client *c);
void serve_show(struct serve *s, const char *bytes, size_t n);
void serve_answer_queries(struct serve *s, const char *bytes, size_t n);
void serve_type(struct serve *s, struct serve_client *c);
void serve_push(struct serve *s);
void serve_size(struct serve *s, struct serve_client *c, int rows, int cols);
/* The network (serve_net.c): rules that a client wants changed, or wants to see. */
void serve_net(struct serve *s, struct serve_client *c, const struct control_message *m, char *text,
	       size_t n);
/* Puts a request that was checked on record (serve_report.c); text is what stands behind its
 * head. */
void serve_report(struct serve *s, const struct serve_client *c, const struct control_message *m,
		  const char *text, size_t n);
/* Starts a command of a request that was checked; the request's bytes are written over. */
void serve_exec(struct serve *s, struct serve_client *c, char *bytes, size_t n);

/* Whether a checkpoint can be made now (serve_checkpoint.c): the words for ward-init, or why not;
 * and its record, as a descriptor. */
must_check int serve_checkpoint(struct serve *s, struct strv *words, int *ret_record_fd,
				struct ward_err *e);
/* It was asked for, or has ended so. */
void serve_checkpoint_answer(struct serve *s, bool good);

/* Questions (serve_approve.c): those that wait, and an answer. */
void serve_approve(struct serve *s, struct serve_client *c, const struct control_message *m,
		   const char *rest);

/* How many commands of clients run. */
size_t serve_running(const struct serve *s);

/* Secrets (serve_secret.c): a request with the descriptor that came along (borrowed, -1: none), and
 * what ward-secrets answers. */
struct secrets_message;
void serve_secret(struct serve *s, struct serve_client *c, const struct control_message *m,
		  const char *text, int fd);
void serve_secret_answered(void *whose, const struct secrets_message *said, const char *text,
			   size_t n);

#endif
