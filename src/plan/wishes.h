/* What a profile wishes for and the rest of the policy, or the engine, rules out. */
#ifndef WARD_PLAN_WISHES_H
#define WARD_PLAN_WISHES_H

#include "model/spec.h"

/* Remembers the hosts whose requests the profile's rules count (llm), before a file goes over
 * them. */
must_check int wishes_note_metered(struct spec *s, struct ward_err *e);
/* Drops what only a profile (or --default) asked for and the policy rules out, each with a note: a
 * published port, grants and a spend limit where there is no network. */
must_check int wishes_settle(struct spec *s, struct ward_err *e);
/* Drops the published ports if only a profile asked for them; why is for the note. False: somebody
 * else did, or there are none. */
bool wishes_drop_ingress(struct spec *s, const char *why);

/* Notes in one line what the profile asks for and the policy file does not give: an agent that
 * finds no network does not say why. profile: the policy before the file was read. */
must_check int wishes_note_overridden(struct spec *s, const char *file,
				      const struct policy *profile, uint64_t memory,
				      struct ward_err *e);

#endif
