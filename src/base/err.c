/*
 * Errors as values. In: an errno and words. Out: a filled struct ward_err. Runs in every process,
 * needs no rights, allocates nothing, prints nothing. Text that does not fit is cut, never overrun.
 */
#include "base/err.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>

/* Names in parentheses: tools/analyzer.h has macros of these names. */
int(ward_fail)(struct ward_err *e, int code, const char *why, ...)
{
	va_list ap;

	e->code = code ? code : EINVAL;
	e->what[0] = '\0';
	e->remedy[0] = '\0';
	va_start(ap, why);
	vsnprintf(e->why, sizeof(e->why), why, ap);
	va_end(ap);
	return -e->code;
}

int(ward_fail_errno)(struct ward_err *e, const char *why, ...)
{
	int code = errno ? errno : EINVAL;
	va_list ap;
	int n;

	e->code = code;
	e->what[0] = '\0';
	e->remedy[0] = '\0';
	va_start(ap, why);
	n = vsnprintf(e->why, sizeof(e->why), why, ap);
	va_end(ap);
	if (n >= 0 && (size_t)n < sizeof(e->why))
		snprintf(e->why + n, sizeof(e->why) - (size_t)n, ": %s", strerror(code));
	return -code;
}

int(ward_wrap)(struct ward_err *e, const char *place, ...)
{
	char inner[sizeof(e->what)];
	va_list ap;
	int n;

	memcpy(inner, e->what, sizeof(inner));
	va_start(ap, place);
	n = vsnprintf(e->what, sizeof(e->what), place, ap);
	va_end(ap);
	if (inner[0] && n >= 0 && (size_t)n < sizeof(e->what))
		snprintf(e->what + n, sizeof(e->what) - (size_t)n, ": %s", inner);
	return -e->code;
}

int(ward_remedy)(struct ward_err *e, const char *remedy, ...)
{
	va_list ap;

	va_start(ap, remedy);
	vsnprintf(e->remedy, sizeof(e->remedy), remedy, ap);
	va_end(ap);
	return -e->code;
}
