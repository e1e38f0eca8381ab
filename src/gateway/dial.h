/* dial's own types: what it is asked for, and what it does about it. */
#ifndef WARD_GATEWAY_DIAL_H
#define WARD_GATEWAY_DIAL_H

#include <netinet/in.h>
#include <sys/socket.h>

#include "gateway/lookup.h"
#include "gateway/proxy_talk.h"
#include "gateway/published.h"
#include "protocol/gateway.h"

#define DIAL_MAX 1024 /* a power of two */
#define TRIES 3       /* at one time */

enum { TAG_FRONT, TAG_LOOKUP, TAG_TRY, TAG_ORDERS };

struct attempt {
	bool used;
	/* its own in lookups: a late answer for the slot's previous flow is not for this one */
	uint32_t question;
	uint64_t id; /* front's */
	struct verdict verdict;
	struct ip ips[LOOKUP_IPS_MAX];
	size_t count, next;
	int fds[TRIES];      /* connecting; -1: none */
	bool watched[TRIES]; /* by epoll */
	struct ip tried[TRIES];
	int error;              /* of the last that failed */
	struct verdict refused; /* why the last address was refused */
	bool was_refused;
	uint64_t next_at_ms, end_at_ms;
	bool by_proxy;
	/* its name is looked up when the supervisor has answered about the files */
	bool looking;
	/* revoked: the rules changed while its name was being looked up */
	bool inward, revoked;
	bool approved;              /* by a person, though the rule asks */
	struct host target;         /* that front asked for */
	struct upstream_talk *talk; /* owned; on the one socket that is left */
};

#define DIAL_GRANTS 64

/* What a person has allowed once. */
struct dial_grant {
	struct host host;
	uint16_t port;
	uint32_t left;     /* connections; 0: the place is free */
	uint64_t until_ms; /* what was not used by then is over */
};

struct dial {
	struct dial_grant grants[DIAL_GRANTS];
	int epoll_fd, front_fd;
	int routes_fd; /* the kernel's routes; -1: none */
	struct lookup *lookup;
	struct rules *rules;
	struct upstream proxy; /* port 0: none */
	struct published inward;
	struct attempt attempts[DIAL_MAX];
	size_t busy;
	uint32_t questions;
	uint64_t files_at_ms; /* what is known of the host's files is from then */
	/* the supervisor was asked, and is waited for until then; 0: not */
	uint64_t files_until_ms;
	struct dial_answer answers[DIAL_AT_ONCE]; /* that front has not been sent yet, */
	int answer_fds[DIAL_AT_ONCE];             /* with these sockets; -1: none */
	unsigned answer_count;
	bool gone;  /* front is */
	bool began; /* something came from front */
};

/* dial_try.c: addresses. Starts with one more; the attempt may be over when this returns. */
void dial_try_next(struct dial *d, struct attempt *a);
/* Something happened on a socket that is being connected. */
void dial_on_try(struct dial *d, uint32_t number);
/* Waits for it to be connected. */
must_check int dial_watch(struct dial *d, struct attempt *a, int slot, uint32_t events);
void dial_connected(struct dial *d, struct attempt *a, int slot);
socklen_t dial_sockaddr(const struct ip *ip, uint16_t port, struct sockaddr_storage *ret);

/* dial_own.c: whether it is an address of this host. */
must_check bool dial_is_own(const struct dial *d, const struct ip *ip);
/* The socket for that; -1: there is none. */
must_check int dial_routes(void);

/* dial_to_front.c: requests and answers. */
void dial_on_front(struct dial *d);
/* Ends the attempt; takes the socket (-1: none). Sent with dial_answer_all(). */
void dial_answer(struct dial *d, struct attempt *a, const struct dial_answer *answer, int fd);
void dial_answer_all(struct dial *d);
void dial_give_up(struct dial *d, struct attempt *a);

/* dial_grant.c: a person's answer; whether there is one for this connection, which it uses up. */
void dial_grant_add(struct dial *d, const struct dial_order *order);
must_check bool dial_grant_use(struct dial *d, const struct host *host, uint16_t port);

/* dial_begin.c: one request; the addresses of a name, or of what is none. */
void dial_begin(struct dial *d, const struct dial_request *request);
void dial_found(void *context, uint32_t id, const struct ip *ips, size_t count);
/* The supervisor has answered about the host's files, or has not in time. */
void dial_files_are_known(struct dial *d);

#endif
