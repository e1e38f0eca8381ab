/* For programs that try libward as a host program would: the public header alone, and checks that
 * end the program. */
#ifndef WARD_TESTS_API_CHECK_H
#define WARD_TESTS_API_CHECK_H

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <ward/ward.h>

#define CHECK(condition)                                                                           \
	do {                                                                                       \
		if (!(condition)) {                                                                \
			fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition);    \
			_exit(1);                                                                  \
		}                                                                                  \
	} while (0)

/* A call of the library that must succeed; e is the error's name. */
#define FINE(call)                                                                                 \
	do {                                                                                       \
		int r_ = (call);                                                                   \
		if (r_ < 0) {                                                                      \
			fprintf(stderr, "%s:%d: %s: %d: %s: %s (%s)\n", __FILE__, __LINE__, #call, \
				r_, e.what, e.why, e.remedy);                                      \
			_exit(1);                                                                  \
		}                                                                                  \
	} while (0)

/* A call that must be refused with this errno and words in the reason. */
#define REFUSED(call, errno_, words)                                                               \
	do {                                                                                       \
		int r_;                                                                            \
		memset(&e, 0, sizeof(e));                                                          \
		r_ = (call);                                                                       \
		if (r_ != -(errno_) || e.code != (errno_) ||                                       \
		    !(strstr(e.why, words) || strstr(e.what, words))) {                            \
			fprintf(stderr, "%s:%d: %s: %d, code %d: %s: %s\n", __FILE__, __LINE__,    \
				#call, r_, e.code, e.what, e.why);                                 \
			_exit(1);                                                                  \
		}                                                                                  \
	} while (0)

#endif
