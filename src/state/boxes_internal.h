/* Shared by the register's own files. */
#ifndef WARD_STATE_BOXES_INTERNAL_H
#define WARD_STATE_BOXES_INTERNAL_H

#include "state/boxes.h"

#define BOXES_DIR "boxes"
#define BOXES_HEADER "ward-box 1 " /* the state's letter stands behind it */
#define BOXES_STATE_AT (sizeof(BOXES_HEADER) - 1)

/* Open the register's two directories, making them where they are missing. */
must_check int boxes_open_state(struct ward_err *e);
must_check int boxes_open_runtime(struct ward_err *e);
/* -EINVAL: the sandbox would see the runtime directory. */
must_check int boxes_check_unseen(int runtime_fd, const struct plan *p, struct ward_err *e);
bool boxes_is_id(const char *name);
/* Appends; 0 or -ENOMEM. */
must_check int boxes_add(struct boxes *v, size_t *cap, struct box_info *i);
/* Removes the entry's directory in the runtime, with the socket. */
void boxes_remove_runtime(const char *id);

/* Appends the text of an entry; name NULL: it has none. */
void boxes_write_info(const struct plan *p, const char *name, struct buf *text);

#endif
