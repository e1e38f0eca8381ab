/* Lists of sources that an image brought: any bytes. */
#include <stdlib.h>
#include <string.h>

#include "image/sources.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	auto_strv hosts = { 0 };

	sources_hosts((const char *)data, size, &hosts);
	if (hosts.len > SOURCES_HOSTS_MAX)
		abort();
	for (size_t i = 0; i < hosts.len; i++)
		if (strspn(hosts.items[i],
			   "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-:") !=
			    strlen(hosts.items[i]) ||
		    hosts.items[i][0] == '-')
			abort();
	return 0;
}
