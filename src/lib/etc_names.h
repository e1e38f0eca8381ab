/* The names in /etc that tables/root.def asks for, remembered from one run to the next. */
#ifndef WARD_LIB_ETC_NAMES_H
#define WARD_LIB_ETC_NAMES_H

#include <stdbool.h>
#include <sys/stat.h>

#include "base/buf.h"

/* The names of the last listing, each ended by a slash, in text, if /etc (whose state is *st) has not changed since; else false. */
bool etc_names_recall(const struct stat *st, char *text, size_t n);
/* Begins a listing of /etc in *list; the caller adds the names, each ended by a slash. It stays empty if /etc changed just now. */
void etc_names_begin(const struct stat *st, struct buf *list);
/* Keeps a listing for the next run. What cannot be kept is listed again. */
void etc_names_keep(const struct buf *list);

#endif
