/* What other scanners say of changes, as findings of the look. Pure functions over bytes that may
 * be hostile: a scanner reads what a sandbox wrote. */
#ifndef WARD_REVIEW_LOOK_OTHER_H
#define WARD_REVIEW_LOOK_OTHER_H

#include "review/look.h"

/* SARIF 2.1.0. dir: the directory that was scanned, without a slash at its end; paths beneath it
 * become relative. scanner: what stands in front of the names of rules. -EINVAL: it is no SARIF;
 * -ENOMEM: also for more findings than a person reads. */
must_check int look_other_sarif(const uint8_t *bytes, size_t n, const char *scanner,
				const char *dir, struct look_findings *ret);
/* "PATH: NAME FOUND" a line; other lines are passed over. */
must_check int look_other_lines(const uint8_t *bytes, size_t n, const char *scanner,
				const char *dir, struct look_findings *ret);

#endif
