/* Detached sandboxes as JSON: one form for the verbs and the library. */
#ifndef WARD_CONTROL_BOXES_JSON_H
#define WARD_CONTROL_BOXES_JSON_H

#include "base/json.h"
#include "control/control.h"
#include "state/boxes.h"

/* One of them as members of an object that has begun. */
void boxes_json(struct json *j, const struct box_info *i);
/* What one uses, as members of an object that has begun. */
void boxes_usage_json(struct json *j, const struct control_usage *u);

#endif
