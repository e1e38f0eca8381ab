/* Fuzzes the hosts file: what is found is an address, and the first line of the input is the
 * name. */
#include <assert.h>
#include <string.h>

#include "gateway/hosts.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	const char *text = (const char *)data, *end = n ? memchr(text, '\n', n) : NULL;
	struct host name;
	struct ip ips[4];
	size_t count;

	if (!end || host_read(text, (size_t)(end - text), &name) != HOST_FINE)
		return 0;
	count = hosts_find(end + 1, n - (size_t)(end + 1 - text), &name, ips, 4);
	assert(count <= 4);
	for (size_t i = 0; i < count; i++)
		assert(ips[i].family == 4 || ips[i].family == 6);
	return 0;
}
