/*
 * Connections that are looked into: an exchange is what a program inside says and hears over one
 * connection, a server is one connection to the outside. An exchange takes a server for each
 * request and gives it back; one that is given back waits in a pool for the next. Both are flows
 * (front.h), told apart by flow.server.
 *
 *   inspect.c         what flow.c calls
 *   server.c          connections to the outside: dialled, greeted, pooled
 *   exchange.c        one connection of a program: its states, refusals, the end
 *   exchange_up.c     requests: read, decided about, written anew
 *   exchange_body.c   requests whose body decides
 *   exchange_ask.c    requests that wait for a person
 *   exchange_down.c   responses
 *   h2.c, h2_stream.c the same for HTTP/2
 *   meter.c           what requests cost
 *   exchange_waf.c    what the firewall says to a request
 */
#ifndef WARD_INSPECT_INSPECT_H
#define WARD_INSPECT_INSPECT_H

#include "base/sha256.h"
#include "gateway/flow.h"
#include "inspect/body_inspect.h"
#include "rules/http_body.h"
#include "rules/http_rule.h"
#include "rules/waf.h"
#include "tape/record.h"
#include "transport/wire.h"

#define KNOWN_SERVERS 64
/* of a request as it is reported; a longer one ends with EXCHANGE_CUT */
#define EXCHANGE_WHAT 384
#define EXCHANGE_CUT "..."

/* What a server speaks, found out when it was first greeted. */
struct known_server {
	struct host host;
	uint16_t port;
	uint8_t alpn; /* enum tls_alpn; 0: free */
};

/* To ward-waf, and what of its next answer is there. */
struct waf_link {
	struct wire wire; /* fd -1: there is none (any more) */
	struct queue out;
	struct waf_said said;
	size_t got;
};

struct inspector {
	struct ca *ca; /* NULL: no rule ends TLS */
	struct tls_server *tls;
	struct tls_trust *trust;
	struct server *idle; /* the youngest first */
	unsigned idle_count;
	struct known_server known[KNOWN_SERVERS];
	struct waf_link waf;
	struct request_ask *asks; /* requests that wait for a person, the youngest first */
	uint64_t ask_serial;
	struct gate_request *unasks; /* that do not any more, and could not be said yet; owned */
	size_t unask_count;
	struct detect_rules *scan_rules; /* NULL: not needed yet */
	/* for one step of one exchange */
	struct http_request request;
	struct http_response response;
	struct http_path path;
};

enum server_state { SERVER_DIAL, SERVER_GREET, SERVER_OPEN };

struct server {
	struct flow *flow;
	struct wire wire;
	uint8_t state;         /* enum server_state */
	uint8_t offer, alpn;   /* enum tls_alpn */
	bool tls, used;        /* used: it has answered before */
	bool keys;             /* it is ward-keys' */
	struct exchange *user; /* NULL: in the pool */
	struct server *next, *prev;
};

enum exchange_state {
	EXCHANGE_GREET,  /* TLS with the program */
	EXCHANGE_HEAD,   /* a request is awaited */
	EXCHANGE_WAF,    /* ward-waf looks at a request: exchange_waf.c */
	EXCHANGE_LOOK,   /* its body is looked into; the server knows nothing of it */
	EXCHANGE_ASK,    /* it waits for a person; the server knows nothing of it */
	EXCHANGE_RELAY,  /* request and response are under way */
	EXCHANGE_TUNNEL, /* a websocket */
	EXCHANGE_REPLY,  /* an answer of our own is under way */
	EXCHANGE_DRAIN,  /* nothing more is said; what still comes is thrown away */
	EXCHANGE_H2      /* HTTP/2 */
};

struct exchange {
	struct flow *flow;
	struct wire wire;
	struct server *server; /* NULL: none */
	uint8_t state;         /* enum exchange_state */
	bool old;              /* the program speaks HTTP/1.0 */
	bool close;            /* the connection ends behind this response */
	bool ended;            /* the program says nothing more */
	bool held;             /* nothing of this request has gone to the server yet */
	bool is_head, websocket;
	bool cut; /* the response went beyond the budget */
	/* some of the request's body has gone: it cannot be said again */
	bool sent;
	bool gone; /* some of the request has gone, if only of its head */
	/* a part of the request was sent, which was not reported yet */
	bool unreported;
	bool answered, done; /* the response has begun, is complete */
	bool up_chunked, down_chunked;
	struct queue in; /* of the program, not yet understood */
	size_t scanned;
	struct queue up, down; /* to the server, to the program */
	struct queue answer;   /* of the server: a head that is not whole, trailers */
	struct http_body up_body, down_body;
	uint64_t up_bytes, down_bytes;
	uint64_t request_limit, response_limit;
	/* the request's head as it was written, until it is answered */
	struct buf head;
	char more[ASKED_MORE]; /* of what: for the remedy alone */
	/* "POST /v1/files", for events; with "KEY=ENTRY" behind where a rule is about what is asked
	 * for */
	char what[EXCHANGE_WHAT];
	uint16_t status;           /* of the answer; 0: there is none, or it was reported */
	bool git;                  /* refusals are for git's eyes */
	struct body_inspect *look; /* owned; NULL: nothing is looked into */
	uint8_t body_inspect_say;  /* enum body_inspect_say */
	uint32_t look_room;        /* bytes of front's purse */
	uint8_t lost;              /* enum verdict_reason: why there is no server */
	char why[200];             /* and in words */
	/* of this request's rule: its refusals look like those of such an API */
	bool llm;
	uint32_t retry_s;        /* with a refusal: when to try again; 0: not at all */
	struct waf_hold *waf;    /* owned; NULL: ward-waf is not asked */
	struct request_ask *ask; /* owned; NULL: no person is asked */
	bool approved;           /* a person has allowed the request under way */
	struct body_scan *scan;  /* of this request's body, owned; NULL: it is not looked through */
	uint8_t scan_reason;     /* enum verdict_reason: what it came to */
	struct meter *meter;     /* of this request, owned; NULL: nothing is counted */
	struct h2 *h2;           /* owned; NULL: HTTP/1 */
	/* of the request under way; owned; NULL: nothing is recorded */
	struct record *record;
};

static inline struct inspector *inspector_of(const struct front *f)
{
	return f->inspector;
}

/* server.c */
/* Takes one from the pool, or begins a connection; ex->server. offer: enum tls_alpn. False: out of
 * memory. */
must_check bool server_get(struct front *f, struct exchange *ex, bool tls, enum tls_alpn offer);
/* Gives it back: into the pool where it can answer again, else it is closed. */
void server_put(struct front *f, struct exchange *ex, bool reuse);
void server_dialled(struct front *f, struct flow *w);
bool server_run(struct front *f, struct flow *w);
void server_closed(struct front *f, struct flow *w);
/* Whether its server is behind ward-keys. */
bool server_is_for_keys(const struct front *f, const struct host *host);
/* What the server speaks; 0: not known yet. */
unsigned server_known(const struct inspector *i, const struct host *host, uint16_t port);

/* exchange.c */
void exchange_begin(struct front *f, struct flow *w);
bool exchange_run(struct front *f, struct flow *w);
void exchange_closed(struct front *f, struct flow *w);
/* Answers instead of the server, tells it, and goes on or ends. */
void exchange_refuse(struct front *f, struct exchange *ex, enum verdict_reason reason);
/* Tells a refusal and appends the body that says so; returns the status. *ret_type: the type of the
 * body, NULL: of no interest. */
unsigned exchange_say_refused(struct front *f, struct exchange *ex, enum verdict_reason reason,
			      struct buf *body, const char **ret_type);
/* Behind a response: the next request, or the end. */
void exchange_next(struct front *f, struct exchange *ex);
/* How far the request under way has come, for meter_end(): enum meter_way. */
unsigned exchange_way(const struct exchange *ex);
/* Breaks the connection: the program sees that something is missing. */
void exchange_break(struct front *f, struct exchange *ex);
/* Reads of the program (UP) or of the server (DOWN) what the limits allow, and counts it: the only
 * way by which an exchange reads what it passes on. Behind TLS_READ the flow may be closed. */
must_check enum tls_say exchange_read(struct front *f, struct exchange *ex, enum direction d,
				      void *bytes, size_t n, size_t *ret_n);
/* Writes ex->up to the server. What is more than was read (a head written anew, fields that HPACK
 * had made small) is taken from the limits first. Behind TLS_READ the flow may be closed. */
must_check enum tls_say exchange_flush(struct front *f, struct exchange *ex, size_t *ret_n);

/* exchange_up.c */
/* What the rules in force say about a request for this host. */
must_check enum verdict_reason exchange_judge(struct front *f, struct exchange *ex,
					      const struct http_request *r,
					      struct http_verdict *ret);
/* Whether the request's body is held back on its way, so that the server cannot say that it wants
 * it: takes Expect: 100-continue out of r, and the reader of r answers it instead. */
must_check bool exchange_must_continue(const struct front *f, const struct exchange *ex,
				       struct http_request *r, const struct http_verdict *v);
/* Takes Expect out of r. True: it was 100-continue, and there is a body. */
bool exchange_drop_expect(struct http_request *r);
/* "POST /v1/files": printable, and cut where it is long. */
void exchange_describe(char *out, size_t size, const struct http_request *r, struct http_text path);
bool exchange_run_head(struct front *f, struct exchange *ex);
bool exchange_run_up(struct front *f, struct exchange *ex);
/* The next bytes of the body, from what was read before or from the program; whether something
 * came. */
bool exchange_read_body(struct front *f, struct exchange *ex);
/* Another server for the same request. */
bool exchange_again(struct front *f, struct exchange *ex);

/* exchange_waf.c */
must_check int waf_open(struct front *f, struct ward_err *e);
void waf_read(struct front *f);
/* True: the rule has a firewall, which sees to it from here on. */
must_check bool exchange_begin_waf(struct front *f, struct exchange *ex,
				   const struct http_request *r, const struct http_verdict *v);
void exchange_waf_body(struct exchange *ex, const uint8_t *bytes, size_t n);
bool exchange_run_waf(struct front *f, struct exchange *ex);
void exchange_end_waf(struct exchange *ex);

/* exchange_body.c */
/* The head is allowed if the body is: v has looks. */
void exchange_begin_look(struct front *f, struct exchange *ex, const struct http_verdict *v,
			 const struct http_request *r);
bool exchange_run_look(struct front *f, struct exchange *ex);
/* What has come of the body was looked into. False: it is over with the request, or with the
 * exchange. */
must_check bool exchange_bodyed(struct front *f, struct exchange *ex);
void exchange_end_look(struct front *f, struct exchange *ex);
/* The body is not looked into any more; what is held stays accounted for. */
void exchange_end_body(struct exchange *ex);
/* Behind "POST /path": what it asks for. why: of the refusal, where there is more to say than its
 * reason does; size of it. */
void exchange_note_asked(char what[EXCHANGE_WHAT], const struct asked *asked);
/* Counts a request at the rule that its body has chosen. False: there are too many
 * (REASON_REQUEST_RATE). */
must_check bool exchange_pace_look(struct front *f, struct exchange *ex,
				   const struct body_inspect *l);
void exchange_explain(char *why, size_t size, enum verdict_reason reason,
		      const struct asked *asked);
/* A held body has grown to so many bytes. False: there is no room for it. */
must_check bool exchange_hold(struct front *f, uint32_t *room, size_t bytes);

/* exchange_ask.c */
/* What a person is asked about. */
struct request_parts {
	struct sha256 sum;               /* of all that will be sent, as far as it is here */
	struct http_text target;         /* "POST /v1/files?query", whole */
	const char *what;                /* exchange.what */
	const struct body_inspect *look; /* that has let it pass; NULL: its head has */
	bool unread;                     /* there is more of its body */
};
struct h2_stream;
/* Whether the rule asks. */
bool exchange_asks(const struct front *f, int32_t rule);
/* By the rule of the flow's verdict; s NULL: HTTP/1. NULL: too many wait. */
must_check struct request_ask *request_ask_new(struct front *f, struct exchange *ex,
					       struct h2_stream *s, const struct request_parts *p);
/* Takes it; the question goes, too, if it was not answered. NULL is fine. */
void request_ask_end(struct front *f, struct request_ask *a);
/* Of one that was answered. */
must_check enum verdict_reason request_ask_answer(const struct front *f,
						  const struct request_ask *a);
int32_t request_ask_rule(const struct request_ask *a);
/* A request is allowed: it goes to the server, or waits for a person. False: the exchange is over.
 */
must_check bool exchange_pass(struct front *f, struct exchange *ex);
bool exchange_run_ask(struct front *f, struct exchange *ex);
/* The supervisor has answered; it has room again. */
void requests_answered(struct front *f, const struct gate_order *order);
void requests_ask_later(struct front *f);

/* exchange_down.c */
/* Tells that a request was answered, once. */
void exchange_tell(struct front *f, struct exchange *ex);
bool exchange_run_down(struct front *f, struct exchange *ex);
/* replay says with these fields that it has no answer: why, for the refusal. */
void exchange_not_recorded(struct exchange *ex, const struct http_fields *f);
/* The server has ended, or was lost. */
void exchange_server_gone(struct front *f, struct exchange *ex, enum tls_say how);

#endif
