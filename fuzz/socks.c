/* Fuzzes SOCKS requests: a host and a port where one is found, more bytes behind change nothing,
 * fewer never make another. */
#include <assert.h>
#include <string.h>

#include "rules/socks.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct host host, again;
	uint16_t port, port_again;
	enum socks_code code, code_again;
	uint8_t reply[2];
	int r = socks_request(data, n, &host, &port, &code);

	(void)!socks_greeting(data, n, reply);
	assert(r <= SOCKS_MAX && r <= (int)n);
	if (r <= 0)
		return 0;
	assert(port && host.kind != HOST_NONE && code == SOCKS_OK);
	assert(socks_request(data, (size_t)r, &again, &port_again, &code_again) == r &&
	       host_equal(&host, &again));
	assert(socks_request(data, (size_t)r - 1, &again, &port_again, &code_again) == 0);
	return 0;
}
