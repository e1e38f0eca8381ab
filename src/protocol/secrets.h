/*
 * What supervisor, ward-secrets and ward-keys say to each other. Processes of one build and one
 * user; the reader of a message believes no length in it.
 *
 *   supervisor <-> ward-secrets SOCK_SEQPACKET, struct secrets_message and what follows it. No
 *   secret goes this way, except as a descriptor that one can be read from (SECRETS_GRANT of `ward
 *   secret grant`).
 *   ward-secrets <-> ward-keys SOCK_STREAM, struct keys_frame and what follows it: secrets, and
 *   back how often they were used and where they were found.
 *   front <-> ward-keys SOCK_SEQPACKET, struct keys_open with two descriptors: a socket that is
 *   connected to the server, and one end of a stream over which front sends requests and receives
 *   answers, HTTP/1.1 or HTTP/2 in the clear, whichever the server chose of what is offered.
 */
#ifndef WARD_PROTOCOL_SECRETS_H
#define WARD_PROTOCOL_SECRETS_H

#include <stdint.h>

#define SECRETS_MESSAGE_MAX (128 * 1024)
#define SECRET_LEAST 8 /* bytes: what is shorter is found in everything */
#define SECRET_MOST 4096
#define KEYS_FRAME_MAX (2 * 1024 * 1024)
/* locked, in ward-secrets and in ward-keys: a frame, what is made of it, the values */
#define SAFE_BYTES (8 * 1024 * 1024)

/* Descriptors that the programs are started with, beside 0-2. */
enum { SECRETS_FD_CONTROL = 3, SECRETS_FDS_END };
enum { KEYS_FD_SECRETS = 3, KEYS_FD_LINK, KEYS_FD_TRUST, KEYS_FDS_END };

enum secrets_op {
	/* to ward-secrets */
	/* a path of the host's that exists inside; a secret comes from none of them */
	SECRETS_SEEN = 1,
	/* a canonical line; with a descriptor: the value is what can be read from it */
	SECRETS_GRANT,
	/* environment and command line inside, each text ended by NUL: no secret may be in them */
	SECRETS_WORDS,
	/* -> SECRETS_SHOWN for each variable, then SECRETS_READY or SECRETS_ERROR */
	SECRETS_FETCH,
	/* with two descriptors: front's link and the trust store: ward-keys is started. No
	 * answer */
	SECRETS_KEYS,
	SECRETS_LIST,   /* -> SECRETS_ROWS */
	SECRETS_REVOKE, /* a name -> SECRETS_OK */
	SECRETS_ANSWER, /* struct keys_answer: of a person. No answer */
	SECRETS_OPS,
	/* from ward-secrets */
	SECRETS_SHOWN = 128, /* NAME=PLACEHOLDER */
	SECRETS_READY,
	SECRETS_OK,    /* behind it text for people or nothing */
	SECRETS_ERROR, /* code: errno; behind it what, why, remedy, each ended by NUL */
	SECRETS_ROWS,  /* behind it struct secrets_row, as many as fit */
	SECRETS_EVENT, /* behind it struct keys_event: for the report and the journal */
	SECRETS_ASKED  /* behind it struct keys_asked; code: 1 it waits, 0 not any more */
};

struct secrets_message {
	uint32_t op;
	int32_t code;
	uint64_t tag; /* of a request; stands in its answer */
};

enum secret_state { SECRET_LIVE, SECRET_EXPIRED, SECRET_REVOKED, SECRET_SPENT, SECRET_STATES };
#define SECRET_STATE_NAMES                                                                         \
	{                                                                                          \
		"live", "expired", "revoked", "spent"                                              \
	}

struct secrets_row {
	char name[68], source[140], place[80], hosts[256];
	uint32_t state; /* enum secret_state */
	uint32_t unused;
	uint64_t uses, max_uses; /* UINT64_MAX: no limit */
	uint64_t expires_ms;     /* from now */
};

enum keys_op {
	/* to ward-keys */
	KEYS_SETTINGS = 1, /* struct keys_settings */
	KEYS_GRANT,        /* struct keys_grant, line, values, placeholders */
	KEYS_REVOKE,       /* number: the grant is no more */
	/* uint64_t length, the database that all values and placeholders are looked for with, their
	 * texts */
	KEYS_SCANNER,
	/* all of the policy's grants are there: front is served from now on */
	KEYS_READY,
	KEYS_ANSWER, /* struct keys_answer */
	/* from ward-keys */
	KEYS_USED = 128, /* number: requests that it was put into, in all */
	KEYS_EVENT,      /* struct keys_event */
	/* struct keys_asked: a person is asked whether a secret may be put in, or not any more */
	KEYS_ASK,
	KEYS_UNASK
};

struct keys_frame {
	uint32_t op;
	uint32_t bytes;  /* behind it */
	uint64_t number; /* of the grant, from 0; USED: grant << 32 | count */
};

/* A request that waits for its secret. Texts are printable, and ended. */
struct keys_asked {
	uint64_t serial;
	uint16_t port;
	char grants[140];  /* their names */
	char host[256];    /* a canonical name */
	char what[384];    /* "POST /v1/files" */
	char query[120];   /* cut in the middle where it is long */
	uint8_t exact[32]; /* digest of what is sent beside the secret */
};

/* For the requests with this digest that wait and are not younger than serial. */
struct keys_answer {
	uint64_t serial;
	uint32_t reason; /* enum verdict_reason; REASON_ALLOWED is a yes; or KEYS_ASKED_FULL */
	uint8_t exact[32];
};

#define KEYS_ASKED_FULL UINT32_MAX /* the supervisor has no room for the question */

struct keys_settings {
	uint32_t leaks; /* of the policy: block, strip, log */
};

struct keys_grant {
	uint64_t expires_at_ms; /* of the monotonic clock */
	uint64_t uses_left;     /* UINT64_MAX: no limit */
	uint32_t line_bytes;
	uint32_t values;
	uint32_t value_bytes[3]; /* the same for its placeholder */
	uint32_t state;          /* enum secret_state */
};

/* What a pattern of the scanner stands for. */
#define PATTERN_ID(grant, value, shown, form)                                                      \
	((uint32_t)(grant) << 16 | (uint32_t)(value) << 8 | (uint32_t)(shown) << 7 |               \
	 (uint32_t)(form))
#define PATTERN_GRANT(id) ((id) >> 16)
/* behind the grant's values: those that it had before */
#define PATTERN_VALUE(id) ((id) >> 8 & 255)
#define PATTERN_SHOWN(id) ((id) >> 7 & 1) /* the placeholder's, not the secret's */
/* not all of it: more of its beginning than may be seen */
#define PATTERN_BEGUN 64
#define PATTERN_IS_BEGUN(id) (((id)&PATTERN_BEGUN) != 0)
/* enum form, or behind those a writer of what Basic sends */
#define PATTERN_FORM(id) ((id)&63)

enum keys_event_kind {
	KEYS_EVENT_USE = 1,
	KEYS_EVENT_LEAK,
	KEYS_EVENT_SCRUB,
	KEYS_EVENT_REFUSED,
	KEYS_EVENT_LOST /* count: events that could not be sent */,
	KEYS_EVENT_GRANTED,
	KEYS_EVENT_REVOKED
};

struct keys_event {
	uint32_t kind;
	uint32_t action; /* LEAK: of the policy */
	uint32_t shown;  /* LEAK: a placeholder where it does not belong, not the secret */
	uint32_t count;
	char grant[68];
	char host[256];
	char detail[120]; /* static text of ours: where it was found, why it was refused */
};

struct keys_open {
	uint32_t magic;
	uint16_t port;
	uint16_t host_len;
	char host[256]; /* a canonical name */
	uint32_t offer; /* enum tls_alpn */
};
#define KEYS_OPEN_MAGIC 0x776b6f32

/* The first byte that front receives on the stream; after the last kind the reason follows, and
 * nothing else. */
#define KEYS_SPEAKS_HTTP1 "1"
#define KEYS_SPEAKS_HTTP2 "2"
#define KEYS_SPEAKS_NOTHING "!"

#endif
