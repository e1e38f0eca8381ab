/* Channels between a sandbox and its children: what waits to be received. */
#ifndef WARD_CLI_CHILDREN_CHANNEL_H
#define WARD_CLI_CHILDREN_CHANNEL_H

#include "policy/policy_channel.h"

struct channels;

/* Of a policy, whose schemas are checked. NULL in *ret: it has none. */
must_check int channels_open(const struct policy *p, struct channels **ret, struct ward_err *e);
void channels_free(struct channels *c);

/* One message: who sends it, where to (NULL: to the only one that may have it). It is judged, by a
 * process without rights where its bytes are read, and queued; ret_to: the receivers. */
struct channel_message {
	const char *channel, *from, *to, *text;
};
must_check int channels_send(struct channels *c, const struct channel_message *m, uint64_t now_ms,
			     char ret_to[CHANNEL_NAME_TEXT], struct ward_err *e);
/* The next message for `who`, a line {"from": NAME, "message": VALUE} that the caller frees. 1:
 * there is none yet; -EACCES: it may not receive from this channel. */
must_check int channels_receive(struct channels *c, const char *name, const char *who,
				char **ret_text, struct ward_err *e);
/* A child has ended: what waits for it is dropped. */
void channels_forget(struct channels *c, const char *who);

#endif
