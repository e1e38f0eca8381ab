/*
 * What stands beside the handles: version, memory, errors. Every error of the inside (struct
 * ward_err) leaves through api_fail(), so that it costs nothing if the caller does not want it.
 */
#include "api/api.h"

#include <string.h>

_Static_assert(sizeof(struct ward_error) == sizeof(struct ward_err) &&
		       offsetof(struct ward_error, what) == offsetof(struct ward_err, what) &&
		       offsetof(struct ward_error, why) == offsetof(struct ward_err, why) &&
		       offsetof(struct ward_error, remedy) == offsetof(struct ward_err, remedy),
	       "a public error is an inner one");

const char *ward_version(void)
{
	return WARD_VERSION;
}

void ward_free(void *text)
{
	free(text);
}

int api_fail(struct ward_error *ret_e, const struct ward_err *e)
{
	if (ret_e)
		memcpy(ret_e, e, sizeof(*ret_e));
	return -e->code;
}
