/* One line of QEMU's control channel: whatever it is, the texts that are kept fit and end. */
#include <stdlib.h>
#include <string.h>

#include "vm/qmp.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
	struct qmp_line line;

	if (!qmp_read(bytes, n, &line))
		return 0;
	if (strnlen(line.status, sizeof(line.status)) == sizeof(line.status) ||
	    strnlen(line.text, sizeof(line.text)) == sizeof(line.text))
		abort();
	if (line.kind != QMP_RETURN && line.kind != QMP_ERROR && line.kind != QMP_EVENT &&
	    (line.status[0] || line.text[0]) && !memchr(bytes, '"', n))
		abort();
	return 0;
}
