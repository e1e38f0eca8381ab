/* Where each value of a policy came from, for people and programs. */
#ifndef WARD_PLAN_SPEC_ORIGIN_H
#define WARD_PLAN_SPEC_ORIGIN_H

#include "base/json.h"
#include "model/spec.h"

/* Appends where a field's value came from: "ward.yaml:3", "profile claude:9", "command line". files
 * are the names that origins count. */
void spec_put_origin(const struct policy *p, const struct strv *files, enum policy_field field,
		     struct buf *out);
/* Appends one line for each field that somebody has set: its value, and who. */
void spec_print_policy(const struct spec *s, struct buf *out);
/* Every field with its value and origin, as the member "policy". */
void spec_json_policy(const struct spec *s, struct json *j);

#endif
