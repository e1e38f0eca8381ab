/* ward-keys' own types: the secrets that it holds, and the connections that it puts them into. */
#ifndef WARD_KEYS_KEYS_H
#define WARD_KEYS_KEYS_H

#include "creds/safe.h"
#include "keys/inject.h"
#include "keys/scan.h"
#include "keys/unzip.h"
#include "protocol/secrets.h"
#include "rules/http_body.h"
#include "transport/tls_up.h"

#define KEYS_COMPOSE (HTTP1_HEAD_MAX + 8 * SECRET_MOST) /* a head with its secrets */
#define KEYS_LEAK_FIELD "x-ward-leak"
#define KEYS_LEAK_LINE                                                                             \
	"X-Ward-Leak: yes\r\n" /* in an answer to front: something was found in its request */
#define KEYS_CONNS_MAX 1000

struct key_grant {
	bool there, revoked;
	bool passed_over; /* reported: a request to its host was not one of its */
	struct policy_grant grant;
	uint8_t *values[GRANT_VALUES]; /* in the safe */
	/* placeholders; in the safe, too: one kind of memory */
	uint8_t *shown[GRANT_VALUES];
	size_t bytes[GRANT_VALUES], count;
	uint64_t expires_at_ms, uses_left, uses;
};

struct conn;

struct keys {
	int epoll_fd, secrets_fd, link_fd;
	struct safe safe;
	struct tls_trust *trust;
	uint32_t leaks; /* of the policy */
	struct key_grant grants[GRANTS_MAX];
	struct scan *scan;        /* NULL: none yet, nothing passes */
	uint8_t *db, *text_bytes; /* of the scanner; in the safe */
	struct scan_text *texts;
	bool odd_texts;              /* one has a byte that may be a flag of gRPC's */
	size_t collected;            /* bytes of bodies that are held */
	uint64_t questions;          /* for a person, so far */
	struct http_request request; /* room for the one that is looked at, */
	struct http_path path;       /* and the other readings of its path */
	uint8_t *compose;            /* in the safe: where heads are put together */
	size_t compose_bytes;        /* KEYS_COMPOSE, or what there is */
	struct buf said;             /* for ward-secrets, not yet sent */
	/* events that there was no room for, not reported yet */
	uint32_t lost;
	struct conn *conns, *dead;
	unsigned conn_count;
	bool begun, ready; /* front is heard; the first grants are there */
	/* bytes of answers are held back; they go when nothing comes for a while */
	bool waiting;
	uint64_t looked_ms; /* when they were last looked at */
	bool fat;           /* it was busy since it gave memory back */
	unsigned rounds;    /* of being busy, since then */
	bool ending;
};

/* keys_store.c: what ward-secrets hands over. False: it is gone, or speaks nonsense. */
must_check bool store_read(struct keys *k);
/* False: there is no room, or no reader. */
bool store_say(struct keys *k, enum keys_op op, uint64_t number, const void *bytes, size_t n);
void store_flush(struct keys *k);
void store_event(struct keys *k, const struct keys_event *event);
/* All grants for a request; returns how many. *ret_why is set where one of them may not be used
 * now, and *ret_name to its name. Counts nothing. */
size_t store_find(struct keys *k, const char *host, const struct http_request *request,
		  uint64_t now, struct key_grant *ret[INJECT_MAX], const char **ret_why,
		  const char **ret_name);
/* Why a grant may not be used now; NULL: it may. */
const char *store_why_not(const struct key_grant *g, uint64_t now);
void store_used(struct keys *k, struct key_grant *g, const char *host);
/* One more text was found: reported once a request. */
void store_found(struct keys *k, enum keys_event_kind kind, const struct scan_for *f,
		 const char *host, const char *where);

/* keys_person.c: requests that this answer is for go on, or are refused. */
void person_answered(struct keys *k, const struct keys_answer *answer);

/* keys_conn.c: one connection to a server. Takes both descriptors. */
void conn_open(struct keys *k, const struct keys_open *open, int server_fd, int client_fd);
void conn_ready(struct keys *k, struct conn *c);
void conn_expire(struct keys *k, uint64_t now);
void conn_free_dead(struct keys *k);

#endif
