/* Channels of a policy (channels): who may send which messages to whom. */
#ifndef WARD_POLICY_POLICY_CHANNEL_H
#define WARD_POLICY_POLICY_CHANNEL_H

#include "policy/policy.h"

#define CHANNELS_MAX 16
#define CHANNEL_NAME_TEXT 64
#define CHANNEL_PARENT "parent" /* the sandbox whose policy it is; other names are of children */

struct policy_channel {
	char name[CHANNEL_NAME_TEXT];
	struct strv from, to; /* owned */
	char *schema;         /* JSON text; owned */
	uint64_t max_bytes, per_minute;
};

/* Takes apart one line of canonical JSON, as struct policy holds them. -EINVAL with *e. The caller
 * clears *ret in any case. Pure. */
must_check int policy_channel_read(const char *line, struct policy_channel *ret,
				   struct ward_err *e);
void policy_channel_clear(struct policy_channel *c);

#endif
