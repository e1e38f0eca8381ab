/* What options mean beyond the field that they set. Private to src/plan. */
#ifndef WARD_PLAN_SPEC_IMPLY_H
#define WARD_PLAN_SPEC_IMPLY_H

#include "model/spec.h"

/* After the options are set: allows the hosts of their secrets, and turns the network on where they
 * name somebody to reach. Each is set as by the command line, so narrowing is checked as for it. */
must_check int spec_imply_reach(const struct spec_request *r, struct policy *p, struct ward_err *e);

/* --allow of the host's loopback reaches nothing: a line in *said names the option that does. */
void spec_note_loopback(const struct spec_request *r, struct strv *said);

/* Where the command line or the user's own defaults limit what language models may cost: makes the
 * rules for well-known ones count, and gives them list prices if the policy has none. Only narrows,
 * so it needs no leave of a policy file. What it did is in s->notes. */
must_check int spec_count_costs(struct spec *s, struct ward_err *e);

#endif
