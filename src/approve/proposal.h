/* What ward-ask sends (protocol/ask.h), and how a proposal is shown to a person. */
#ifndef WARD_APPROVE_PROPOSAL_H
#define WARD_APPROVE_PROPOSAL_H

#include "model/question.h"
#include "protocol/ask.h"
#include "rules/decide.h"

#define PROPOSAL_REASON_MAX 100 /* bytes: the whole of it is shown */
#define PROPOSAL_PATH_MAX 150

enum proposal_verb {
	PROPOSAL_HELP,
	PROPOSAL_RULES,
	PROPOSAL_DENIALS,
	PROPOSAL_ALLOW,
	PROPOSAL_PUBLISH
};

struct proposal {
	enum proposal_verb verb;
	bool json;
	struct host host;                 /* ALLOW: kind HOST_NONE: of a path */
	uint16_t port;                    /* of the host; PUBLISH: of the sandbox */
	char path[PROPOSAL_PATH_MAX + 1]; /* absolute, without ., .. and empty parts */
	char reason[PROPOSAL_REASON_MAX + 1];
};

extern const char proposal_usage[];

/* Reads a packet. False: it is no request that can be answered; *ret_wrong: why, or NULL where it
 * was not even made by ward-ask. A pure function over untrusted bytes. */
must_check bool proposal_read(const uint8_t *bytes, size_t n, struct proposal *ret,
			      const char **ret_wrong);

/* What a proposal of a host would change. */
enum proposal_news {
	PROPOSAL_NOTHING,  /* the rules allow it already */
	PROPOSAL_ASKED,    /* a rule asks about each connection */
	PROPOSAL_UNLISTED, /* no rule names the host */
	PROPOSAL_OTHER_PORT,
	PROPOSAL_DENIED,    /* a rule denies it */
	PROPOSAL_NO_NETWORK /* the sandbox has none */
};

/* r NULL: there is no network. A pure function. */
enum proposal_news proposal_judge(const struct rules *r, const struct proposal *p);
/* Whether it is a host that can be proposed: a name, or a public address. A pure function. */
bool proposal_is_public(const struct proposal *p);
/* The question; real: where a path leads on the host, NULL: nowhere; serial: of the program that
 * proposes it. A pure function. */
void proposal_show(const struct rules *r, const struct proposal *p, const char *real,
		   enum proposal_news news, uint64_t serial, struct question *ret);

#endif
