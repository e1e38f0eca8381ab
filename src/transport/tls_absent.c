/*
 * What OpenSSL would reach for and must not have here: libraries loaded at run time, and names
 * looked up by the C library. Only in the static program, where the linker brings every call of
 * these to this file (--wrap); the C library would need shared libraries for them.
 */
#include <dlfcn.h>
#include <netdb.h>
#include <stddef.h>

void *__wrap_dlopen(const char *file, int mode);
int __wrap_getaddrinfo(const char *node, const char *service, const struct addrinfo *hints,
		       struct addrinfo **ret);
struct hostent *__wrap_gethostbyname(const char *name);
int __wrap_getnameinfo(const struct sockaddr *address, socklen_t n, char *host, socklen_t host_n,
		       char *service, socklen_t service_n, int flags);

void *__wrap_dlopen(const char *file, int mode)
{
	(void)file;
	(void)mode;
	return NULL;
}

int __wrap_getaddrinfo(const char *node, const char *service, const struct addrinfo *hints,
		       struct addrinfo **ret)
{
	(void)node;
	(void)service;
	(void)hints;
	(void)ret;
	return EAI_FAIL;
}

struct hostent *__wrap_gethostbyname(const char *name)
{
	(void)name;
	return NULL;
}

int __wrap_getnameinfo(const struct sockaddr *address, socklen_t n, char *host, socklen_t host_n,
		       char *service, socklen_t service_n, int flags)
{
	(void)address;
	(void)n;
	(void)host;
	(void)host_n;
	(void)service;
	(void)service_n;
	(void)flags;
	return EAI_FAIL;
}
