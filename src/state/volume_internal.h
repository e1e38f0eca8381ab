/* Shared by volume.c and volume_list.c: where volumes lie in the state directory. */
#ifndef WARD_STATE_VOLUME_INTERNAL_H
#define WARD_STATE_VOLUME_INTERNAL_H

#include "state/volume.h"

#define VOLUME_OWNER_FILE "workspace" /* of a project's caches: the path of its workspace */
#define VOLUME_HOME_DIR "home"

extern const char *const volume_dirs[]; /* by enum volume_kind, beneath the state directory */

#endif
