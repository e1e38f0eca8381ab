/*
 * What stands beside the handles: version, memory, errors. Every error of the inside (struct ward_err) leaves through
 * api_fail(), so that a caller who does not want it costs nothing.
 */
#include "api/api.h"

#include <string.h>

_Static_assert(sizeof(((struct ward_error *)0)->what) == sizeof(((struct ward_err *)0)->what) &&
	       sizeof(((struct ward_error *)0)->why) == sizeof(((struct ward_err *)0)->why) &&
	       sizeof(((struct ward_error *)0)->remedy) == sizeof(((struct ward_err *)0)->remedy),
	       "a public error holds an inner one");

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
	if (ret_e) {
		ret_e->code = e->code;
		memcpy(ret_e->what, e->what, sizeof(ret_e->what));
		memcpy(ret_e->why, e->why, sizeof(ret_e->why));
		memcpy(ret_e->remedy, e->remedy, sizeof(ret_e->remedy));
	}
	return -e->code;
}
