/*
 * What wardd and ward-envd say to each other over two pipes: frames of streams. wardd outside
 * believes nothing that comes from inside: a frame that breaks these rules ends the connection, and
 * an answer's head is a few numbers, so that nothing inside can write a header outside.
 *
 * A stream is begun by wardd: CALL (a request to ward-envd itself) or DIAL (a connection to a port
 * inside). ward-envd answers it with HEAD, once. DATA goes in both directions, within the credit
 * that the receiver gives; END says that no more comes from that side; RESET ends both sides, and
 * no more is said about it but what was under way. CONFIG is of stream 0 and comes first.
 */
#ifndef WARD_PROTOCOL_ENVD_H
#define WARD_PROTOCOL_ENVD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define ENVD_PATH "/.ward-envd"      /* where the program lies in a sandbox */
#define ENVD_BIN "/.ward-bin"        /* in front of the PATH of what clients start: sudo */
#define ENVD_END_ALL "--end-all"     /* its argument: ends all other processes of the sandbox */
#define ENVD_SAVE "--save"           /* writes an archive of the files to standard output */
#define ENVD_LOAD "--load"           /* makes the files of one that standard input has */
#define ENVD_READY "ready"           /* .ready=LANGUAGE:MODULE,... in CONFIG: the interpreter's */
#define ENVD_SOCKET "ward-envd-1"    /* abstract, in the sandbox's own network namespace */
#define ENVD_FRAME_BYTES (32 * 1024) /* most bytes of a frame behind its header */
#define ENVD_HEADER 8
#define ENVD_WINDOW (256 * 1024) /* credit of each direction at the start */
#define ENVD_STREAMS 1024        /* open at one time */

/* Exit codes of ENVD_SAVE and ENVD_LOAD. */
enum envd_code {
	ENVD_FAILED = 1,
	ENVD_NO_SPACE = 3,
	ENVD_TOO_LONG,
	ENVD_BAD_ARCHIVE,
	ENVD_NOT_STOPPED
};

enum envd_type {
	ENVD_CONFIG = 1, /* NAME=VALUE, each with a NUL: the sandbox's variables; .NAME: settings */
	ENVD_CALL,       /* NAME=VALUE, each with a NUL: method, path, query, and fields */
	ENVD_DIAL,       /* the port, two bytes */
	ENVD_HEAD,       /* struct envd_head */
	ENVD_DATA,
	ENVD_END,
	ENVD_RESET,
	ENVD_CREDIT, /* four bytes: so much more may be sent */
	ENVD_TYPES
};

/* What a body is. */
enum envd_kind { ENVD_NOTHING, ENVD_JSON, ENVD_CONNECT, ENVD_BYTES, ENVD_KINDS };

#define ENVD_LENGTH_UNKNOWN UINT64_MAX

struct envd_frame {
	uint32_t stream;
	uint32_t bytes; /* behind the header */
	uint8_t type;
};

struct envd_head {
	uint16_t status; /* 200 for DIAL: connected */
	uint8_t kind;
	uint8_t zero[5];
	uint64_t length; /* of the body */
};

static inline void envd_frame_write(uint8_t out[ENVD_HEADER], const struct envd_frame *f)
{
	uint32_t second = (uint32_t)f->type << 24 | f->bytes;

	memcpy(out, &f->stream, 4);
	memcpy(out + 4, &second, 4);
}

/* False: no frame of this protocol. */
static inline bool envd_frame_read(const uint8_t in[ENVD_HEADER], struct envd_frame *ret)
{
	uint32_t second;

	memcpy(&ret->stream, in, 4);
	memcpy(&second, in + 4, 4);
	ret->type = (uint8_t)(second >> 24);
	ret->bytes = second & 0xffffff;
	return ret->type > 0 && ret->type < ENVD_TYPES && ret->bytes <= ENVD_FRAME_BYTES &&
	       (ret->stream != 0) == (ret->type != ENVD_CONFIG);
}

/* The body of HEAD as it came; false: a status, kind or length that is none. Answers without a body
 * are none either: a client would read what came behind 204, 205 or 304 as the next answer. */
static inline bool envd_head_read(const uint8_t *bytes, size_t n, struct envd_head *ret)
{
	if (n != sizeof(*ret))
		return false;
	memcpy(ret, bytes, sizeof(*ret));
	return ret->status >= 200 && ret->status <= 599 && ret->status != 204 &&
	       ret->status != 205 && ret->status != 304 && ret->kind < ENVD_KINDS &&
	       (ret->length == ENVD_LENGTH_UNKNOWN || ret->length <= INT64_MAX);
}

#endif
