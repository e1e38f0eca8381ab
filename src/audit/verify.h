/* Whether journals are what was written. */
#ifndef WARD_AUDIT_VERIFY_H
#define WARD_AUDIT_VERIFY_H

#include "audit/lines.h"
#include "audit/sign.h"

struct verify_fault {
	char file[PLACE_NAME];
	uint64_t line; /* 0: the file as a whole */
	char what[256];
};

struct verify {
	int audit_fd; /* borrowed */
	/* the key that must have signed; NULL: the one of the first checkpoint */
	const uint8_t *pinned;
	/* an entry of the index that must be there; NULL: none was named */
	const struct chain *noted;
	struct verify_fault *faults; /* owned */
	size_t fault_count;
	uint64_t journals, events, bytes;
	uint64_t checkpoints, unsigned_entries; /* of the index, after the last checkpoint */
	char key[SIGN_KEY_HEX];                 /* that signed; "": none did */
	char signed_until[EVENT_TIME_TEXT];
	struct chain head; /* the last entry of the index that is good */
	/* journals that ward audit prune removed, as the index says */
	uint64_t pruned;
	struct strv notes;
	/* what the index says, see verify.c */
	struct verify_entry *entries;
	size_t entry_count, entry_cap;
	uint64_t began_us; /* when this began */
	bool failed;       /* out of memory: nothing is proven */
};

/* The index, and what it says about journals. */
void verify_index(struct verify *v);
/* One journal against its chain and the index. */
void verify_run(struct verify *v, const char *run);
/* All journals, and those that the index knows and that are not there. */
must_check int verify_all(struct verify *v, struct ward_err *e);
void verify_clear(struct verify *v);

#endif
