/* A file in the making: it has its name only when it is whole. */
#ifndef WARD_ENVD_UPLOAD_H
#define WARD_ENVD_UPLOAD_H

#include "envd/call.h"

/* Names of files in the making: of a new file, and of one that takes the place of another. The
 * watchers know them, and tell their clients of the file that it becomes. */
#define UPLOAD_NAME ".ward-upload-"
#define UPLOAD_NEW UPLOAD_NAME "new-"
#define UPLOAD_OVER UPLOAD_NAME "over-"

struct upload {
	int fd;
	char path[PATH_MAX]; /* where it goes; links are resolved */
	char temporary[PATH_MAX + 32];
};

/* Begins to write the file; parents are made. 0 or -errno; -EISDIR: there is a directory. */
must_check int upload_begin(struct upload *u, const char *path);
must_check int upload_write(struct upload *u, const void *bytes, size_t n);
/* Sets the client's own attributes, fields "x-metadata-NAME=VALUE". -EINVAL: one is not printable
 * or too long. */
must_check int upload_metadata(struct upload *u, const struct strv *fields);
/* Puts it in its place. 0 or -errno. */
must_check int upload_finish(struct upload *u);
/* Removes what is not finished. */
void upload_drop(struct upload *u);

#endif
