/* Fuzzes the reader of a failed command's last words: whatever they are, there are few entries,
 * each once, each a word of the text (or of the table), and those without a word have none. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "observe/complaint.h"
#include "observe/listeners.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

static void check(const struct complaint *c, const uint8_t *bytes, size_t n)
{
	size_t len = strnlen(c->word, sizeof(c->word));

	if (len == sizeof(c->word) || strpbrk(c->word, " \n'\"`"))
		abort();
	if (c->kind >= COMPLAINT_MEMORY && len)
		abort();
	if ((c->kind == COMPLAINT_LOGIN || c->kind == COMPLAINT_SAYS) != (c->advice != NULL))
		abort();
	if (c->kind == COMPLAINT_LIBRARY && (!len || strpbrk(c->word, "/.")))
		abort();
	if (c->kind == COMPLAINT_ADDRESS) {
		if (strspn(c->word, "0123456789.:") != len || !strchr(c->word, ':'))
			abort();
		return; /* joined of two words */
	}
	if (len && strcmp(c->word, "/var/lib/dpkg") != 0 && strcmp(c->word, "./") != 0 &&
	    !memmem(bytes, n, c->word, len))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
	static struct complaint found[COMPLAINTS_MAX];
	char *line = strndup((const char *)bytes, n);
	size_t count = complaint_read(bytes, n, found);

	if (count > COMPLAINTS_MAX)
		abort();
	for (size_t i = 0; i < count; i++) {
		check(&found[i], bytes, n);
		for (size_t k = 0; k < i; k++)
			if (found[i].kind == found[k].kind &&
			    strcmp(found[i].word, found[k].word) == 0)
				abort();
	}
	if (count && count < n && complaint_names(bytes, n, found[0].word) &&
	    !memmem(bytes, n, found[0].word, strlen(found[0].word)))
		abort();
	if (line)
		(void)listeners_read_line(line);
	free(line);
	return 0;
}
