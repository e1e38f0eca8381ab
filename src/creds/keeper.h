/* ward-secrets: what it keeps. Shared by its own files. */
#ifndef WARD_CREDS_KEEPER_H
#define WARD_CREDS_KEEPER_H

#include "creds/source.h"

/* earlier values of one grant that are remembered; then it is not renewed any more */
#define EARLIER_MAX 192

struct kept {
	char *line; /* canonical; owned */
	struct policy_grant grant;
	struct secret secret;
	struct {
		uint8_t *value;      /* in the safe */
		size_t bytes, which; /* which: of the grant's values */
	} earlier[EARLIER_MAX];      /* other values that it has had: they stay secret */
	size_t earlier_count;
	uint8_t *shown[GRANT_VALUES]; /* placeholders, as long as the first values were; owned */
	size_t shown_bytes[GRANT_VALUES];
	enum secret_state state;
	uint64_t uses, expires_at_ms, renew_at_ms;
	bool reported; /* that it could not be renewed */
};

struct keeper {
	struct safe safe;
	struct strv seen, words;
	struct kept *kept[GRANTS_MAX];
	size_t count;
	uint32_t leaks;
	int control_fd, keys_fd; /* keys_fd -1: it does not run */
	int program_dir_fd;
	pid_t keys_pid;
	struct buf received;              /* of keys, not yet a whole frame */
	struct run_meanwhile meanwhile;   /* a revocation waits for no source */
	struct later *later, *later_last; /* what was received meanwhile and can wait (main.c) */
	unsigned later_count;
	/* events that the supervisor had no room for, and does not know of */
	uint32_t lost;
};

/* keeper.c. Adds a grant; its value is fetched, or read from fd where that is not -1 (borrowed). */
must_check int keeper_add(struct keeper *k, const char *line, int fd, struct ward_err *e);
/* Takes back the grant that was added last; its value was not passed on yet. */
void keeper_undo(struct keeper *k);
must_check int keeper_revoke(struct keeper *k, const char *name, struct ward_err *e);
/* Fetches again what is due. When that is next, of io_now_ms(); 0: never. */
void keeper_renew(struct keeper *k, uint64_t now);
uint64_t keeper_due(const struct keeper *k);
/* No secret may stand in what exists inside. */
must_check int keeper_check_words(const struct keeper *k, struct ward_err *e);
enum secret_state keeper_state(const struct kept *g, uint64_t now);
void keeper_row(const struct kept *g, uint64_t now, struct secrets_row *ret);

/* keys_link.c: starts ward-keys and sends it grants. */
must_check int keys_start(struct keeper *k, int link_fd, int trust_fd, struct ward_err *e);
void keys_tell_grant(struct keeper *k, size_t number);
/* A person has answered about a request that waits. */
void keys_tell_answer(struct keeper *k, const struct keys_answer *answer);
void keys_tell_revoked(struct keeper *k, size_t number);
/* Makes the scanner anew and hands it over. Where none can be made, ward-keys keeps the one that it
 * has: the caller takes back what the new one was for. */
must_check int keys_tell_scanner(struct keeper *k, struct ward_err *e);
/* What it says; false: it is gone. */
bool keys_read(struct keeper *k);

/* compile.c: the database of all forms of all secrets and placeholders, serialised, in the safe. */
typedef bool scanner_emit(void *to, const void *bytes, size_t n);
/* Hands out the texts that it looks for, each as uint32_t id, uint32_t length, bytes. */
bool scanner_texts(struct keeper *k, scanner_emit *emit, void *to);
must_check int scanner_compile(struct keeper *k, uint8_t **ret, size_t *ret_n, struct ward_err *e);

/* main.c */
void control_say(struct keeper *k, uint32_t op, int32_t code, uint64_t tag, const void *bytes,
		 size_t n);
/* A grant was given or revoked: reported when it is done, by the process that did it. */
void control_change(struct keeper *k, uint32_t kind, const char *name);
/* An event, for the report and the journal. Never waits: events that cannot be sent are counted,
 * and the count is reported later. */
void control_event(struct keeper *k, const struct keys_event *event);
/* ward-keys has a request that waits for a person, or not any more: to the supervisor. */
void control_asked(struct keeper *k, bool waits, const struct keys_asked *asked);

#endif
