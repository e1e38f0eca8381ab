/*
 * Decides what a credential may do, from the tables of access.def. Pure functions: what is known of
 * a credential, of what it is used for, and of the moment, goes in; one row of the table comes out.
 * Which credentials there are is in registry_access.c; who asks it is in control_access.c.
 */
#ifndef WARD_DAEMON_ACCESS_H
#define WARD_DAEMON_ACCESS_H

#include "base/buf.h"
#include "daemon/route.h"
#include "policy/hostname.h"

#define OWNER_MAX 64
#define CREDENTIAL_ID 12     /* characters of a credential's id: hexadecimal, random, no secret */
#define ACCESS_LIMIT_MAX 511 /* characters of one limit of a credential */
#define ALL_OWNERS "*"

enum access_right {
	RIGHT_OPEN, /* without a credential */
#define RIGHT(id, name, what) RIGHT_##id,
#include "daemon/access.def"
	RIGHTS
};

enum access_role {
	ROLE_NONE,
#define ROLE(id, name, rights, what) ROLE_##id,
#include "daemon/access.def"
	ROLES
};

enum access_check {
	ACCESS_ALLOWED,
#define CHECK(id, name, status, why) ACCESS_##id,
#include "daemon/access.def"
	ACCESS_CHECKS
};

/* A key or a token, as far as a decision goes. A limit of "" is none. */
struct access_who {
	char id[CREDENTIAL_ID + 1];
	char parent[CREDENTIAL_ID + 1]; /* the key that made the token; "": it is a key */
	char owner[OWNER_MAX + 1];
	enum access_role role;
	int64_t made_ms, expires_ms; /* 0: never */
	char name[TEMPLATE_MAX + 1]; /* what its maker calls it */
	char sandbox[SANDBOX_ID + 1];
	char labels[ACCESS_LIMIT_MAX + 1];    /* a JSON object of strings: all must be there */
	char templates[ACCESS_LIMIT_MAX + 1]; /* names, with commas between */
	char engines[ACCESS_LIMIT_MAX + 1];   /* likewise */
	char sources[ACCESS_LIMIT_MAX + 1];   /* addresses and ADDRESS/BITS, likewise */
	char hours[12];                       /* "08:00-18:00", UTC */
};

/* What it is used for. */
struct access_what {
	const char *owner;    /* NULL: about nothing that has one */
	const char *sandbox;  /* its id; "": one that is to be */
	const char *labels;   /* metadata of it, JSON; NULL: none */
	const char *template; /* NULL: unknown */
	const char *engine; /* NULL: unknown, which no credential with a limit of engines is for */
};

/* When and from where. */
struct access_when {
	int64_t now_ms;
	struct ip source; /* family 0: unknown, which no credential with a limit of it is for */
	bool one_owner;   /* a development server: what is about all owners is about its own */
};

/* ACCESS_ALLOWED, or the first check that the use does not pass. */
must_check enum access_check access_decide(const struct access_who *who, enum access_right right,
					   const struct access_what *what,
					   const struct access_when *when);

const char *access_check_name(enum access_check c);
const char *access_check_why(enum access_check c);
unsigned access_check_status(enum access_check c);
const char *access_role_name(enum access_role r);
/* ROLE_NONE: there is no such role. */
enum access_role access_role_find(const char *name);
const char *access_right_name(enum access_right r);
/* Whether each member of the JSON object wanted is one of the JSON object there. NULL: none. */
bool access_labels_match(const char *wanted, const char *there);
/* Whether the list, with commas between, has the name. */
bool access_list_has(const char *list, const char *word);

/* What a new token shall be: the body of a request. */
struct access_request {
	struct access_who who; /* of it: role, name and limits */
	int64_t ttl_s;
	char wrong[160];
};

#define TOKEN_TTL_MAX_S (30 * 24 * 3600)

/* Reads it; key: it is about a key, which has no end, and is an admin's unless it says more. False:
 * wrong says why. */
must_check bool access_read_request(const uint8_t *bytes, size_t n, bool key,
				    struct access_request *ret);

#endif
