/* What ward-envd does as a command of the keeper (protocol/envd.h): the exit codes. */
#ifndef WARD_ENVD_ARCHIVE_RUN_H
#define WARD_ENVD_ARCHIVE_RUN_H

#include "envd/archive.h"
#include "envd/person.h"

/* Writes the sandbox's files to fd; all other processes are stopped meanwhile. */
int archive_save(int fd);
/* Makes the files that fd says. */
int archive_load(int fd);

/* The directories that an archive has, in the order of archive_record.root; "": there is none. */
struct archive_roots {
	char path[ARCHIVE_ROOTS][PATH_MAX];
};
bool archive_roots(struct archive_roots *ret);

/* Stops all other processes until hold_end(), or until this process ends in whatever way. */
struct hold {
	int fd;
	pid_t waker;
};
bool hold_begin(struct hold *ret);
void hold_end(struct hold *h);

#endif
