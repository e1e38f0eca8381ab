/*
 * Names of services, of which there are none. c-ares asks the C library for them where a port is
 * given by name, and the C library of a static program would load shared ones to find out; nothing
 * here ever gives a port by name.
 */
#include <errno.h>
#include <netdb.h>
#include <stddef.h>

struct servent *getservbyname(const char *name, const char *protocol)
{
	(void)name;
	(void)protocol;
	return NULL;
}

int getservbyport_r(int port, const char *protocol, struct servent *entry, char *buffer, size_t n,
		    struct servent **ret)
{
	(void)port;
	(void)protocol;
	(void)entry;
	(void)buffer;
	(void)n;
	*ret = NULL;
	return ENOENT;
}
