/* Ownership by scope: what a block opens is closed when the block ends, a move is written take_fd()
 * or take_ptr(). */
#ifndef WARD_BASE_OWN_H
#define WARD_BASE_OWN_H

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define must_check __attribute__((warn_unused_result))
#define unused_arg __attribute__((unused))
#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))

static inline void own_close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd); /* never retried: Linux has released it whatever it answers */
}

static inline void own_free(void *p)
{
	free(*(void **)p);
}

static inline void own_close_dir(DIR **d)
{
	if (*d)
		closedir(*d);
}

static inline void own_close_file(FILE **f)
{
	if (*f)
		fclose(*f);
}

#define auto_fd __attribute__((cleanup(own_close_fd))) int
#define auto_free __attribute__((cleanup(own_free)))
#define auto_dir __attribute__((cleanup(own_close_dir))) DIR *
#define auto_file __attribute__((cleanup(own_close_file))) FILE *

/* Hands the descriptor to the caller; the variable no longer owns it. */
static inline int take_fd(int *fd)
{
	int moved = *fd;

	*fd = -1;
	return moved;
}

/* Hands the allocation to the caller; the variable no longer owns it. */
#define take_ptr(p)                                                                                \
	({                                                                                         \
		__typeof__(p) moved_ = (p);                                                        \
		(p) = NULL;                                                                        \
		moved_;                                                                            \
	})

#endif
