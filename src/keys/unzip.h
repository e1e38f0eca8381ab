/* Looking into compressed bodies: what leaves is inflated a second time, only to be looked
 * through. */
#ifndef WARD_KEYS_UNZIP_H
#define WARD_KEYS_UNZIP_H

#include "keys/scan.h"

struct unzip;

enum unzip_kind { UNZIP_NONE, UNZIP_GZIP, UNZIP_DEFLATE, UNZIP_UNKNOWN };

/* Which coding the value of Content-Encoding names. A pure function. */
enum unzip_kind unzip_kind(const char *value, size_t n);
must_check struct unzip *unzip_new(enum unzip_kind kind);
void unzip_free(struct unzip *u);
/* Inflates n bytes and looks through what comes out. False: it is not such a stream, or it grows
 * beyond every measure. */
must_check bool unzip_look(struct unzip *u, const struct scan *s, const uint8_t *bytes, size_t n,
			   struct scan_for *f);

#endif
