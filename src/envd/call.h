/*
 * Requests to ward-envd. wardd has checked who asks, and passes method, path, query, a few fields
 * and the body; the answer goes back as its status, what kind of body it has, and the body.
 */
#ifndef WARD_ENVD_CALL_H
#define WARD_ENVD_CALL_H

#include "base/json.h"
#include "envd/person.h"
#include "envd/session.h"
#include "rules/json_in.h"

#define CALL_BODY_MAX (4 * 1024 * 1024) /* of a request that is one JSON message */

/* The error codes of Connect, in the order of call.c's table. */
enum rpc_code {
	RPC_OK,
	RPC_INVALID_ARGUMENT,
	RPC_NOT_FOUND,
	RPC_ALREADY_EXISTS,
	RPC_PERMISSION_DENIED,
	RPC_RESOURCE_EXHAUSTED,
	RPC_FAILED_PRECONDITION,
	RPC_UNIMPLEMENTED,
	RPC_INTERNAL,
	RPC_UNAUTHENTICATED,
	RPC_DEADLINE_EXCEEDED,
};

struct call {
	struct stream *stream; /* borrowed */
	const char *method, *path, *query;
	const char *content_type, *authorization;
	const struct strv *fields; /* as wardd sent them */
	unsigned keepalive_s;
	uint64_t timeout_ms; /* 0: none */
	struct person person;
	/* of an RPC: the message */
	const uint8_t *message;
	size_t message_len;
	/* where an RPC writes what it answers, or why it fails */
	struct buf answer;
	enum rpc_code code;
	char why[512];
};

/* Serves one stream (struct server). */
void call_serve(struct stream *s, struct strv *fields, unsigned port);
/* The value of a field that wardd passed; NULL: none. */
const char *call_field(const struct call *c, const char *name);
/* Sets the error of an RPC; returns -1. */
int call_fail(struct call *c, enum rpc_code code, const char *why, ...)
	__attribute__((format(printf, 3, 4)));
/* The same from errno, for a path. */
int call_fail_path(struct call *c, int error, const char *path);
/* Answers a REST request with {"code":status,"message":why}. */
void call_refuse(struct call *c, unsigned status, const char *why, ...)
	__attribute__((format(printf, 3, 4)));
/* Answers with a whole body of JSON. */
void call_answer(struct call *c, unsigned status, const struct buf *body);
/* Sends one message of a stream, or its end with the error of the call, if there is one. */
int call_message(struct stream *s, const struct buf *message);
void call_end(struct stream *s, enum rpc_code code, const char *why);

/* A parameter of the query, appended. False: there is none; a broken query counts as none. */
bool call_query(const struct call *c, const char *name, struct buf *out);

/* -- reading messages, as protobuf's JSON has them: names in both spellings, null is absent */

/* Whether the key is the name, given in lowerCamelCase. */
bool message_key(const char *key, const char *name);
/* A string, appended; null is nothing. */
void message_string(struct json_in *j, struct buf *out);
/* true or false; null leaves it. */
void message_bool(struct json_in *j, bool *ret);
/* A number, or one in a string. */
void message_uint(struct json_in *j, uint64_t *ret);

/* -- the methods: 0, or -1 with the call's error set. A stream's method keeps the stream itself. */

#define RPC_UNARY(service, name, function) int function(struct call *c);
#define RPC_STREAM(service, name, function) int function(struct call *c);
#include "envd/methods.def"

/* REST */
void files_get(struct call *c);
void files_post(struct call *c);
void machine_metrics(struct call *c);
void machine_envs(struct call *c);
/* A connection to a port of the sandbox, until both sides have ended. */
void dial_serve(struct stream *s, unsigned port);

#endif
