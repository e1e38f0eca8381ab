/* Fuzzer of a journal's chain: a line that nobody sealed does not pass, what was added does, and no
 * byte is read beyond the line. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "audit/chain.h"
#include "event/event.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
	static char line[EVENT_LINE_MAX];
	struct ward_event v = event_make(EVENT_RUN_NOTE, ACTION_LOG, NULL);
	struct chain c = { 0 }, writer = { 0 };
	char *copy = malloc(n ? n : 1); /* its end is the end of what may be read */
	size_t len;

	if (!copy)
		return 0;
	if (n)
		memcpy(copy, bytes, n);
	if (chain_trust(&c, copy, n) && n < EVENT_TAIL)
		abort();
	c = (struct chain){ 0 };
	if (chain_check(&c, copy, n) == CHAIN_FINE && c.seq != 1)
		abort();
	event_bytes(&v, FIELD_OBJECT, copy, n);
	len = chain_add(&writer, &v, line);
	c = (struct chain){ 0 };
	if (len >= EVENT_LINE_MAX || chain_check(&c, line, len) != CHAIN_FINE ||
	    memcmp(c.head, writer.head, CHAIN_BYTES) != 0)
		abort();
	c = (struct chain){ 0 };
	line[n ? bytes[0] % (len - EVENT_TAIL) : 0] ^= 1;
	if (chain_check(&c, line, len) == CHAIN_FINE)
		abort();
	free(copy);
	return 0;
}
