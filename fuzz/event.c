/* Fuzzer of events. Bytes as a line: what is taken is written again as the same line. Bytes as
 * texts: what is written is one harmless line that is taken again, with the same texts where
 * nothing was cut and all was UTF-8. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "event/event.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

static void check_line(const char *line, size_t n)
{
	static char scratch[EVENT_LINE_MAX], again[EVENT_LINE_MAX];
	struct ward_event v;
	const char *hash;
	size_t len;

	if (!event_decode(line, n, scratch, &v, &hash))
		return;
	len = event_encode(&v, again);
	if (hash) {
		len -= 2;
		if (n < len || memcmp(line + len, ",\"hash\":\"", 9) != 0)
			if (!memmem(again, len, ",\"cut\":true", 11))
				abort();
		return;
	}
	if (memmem(again, len, ",\"cut\":true", 11))
		return; /* longer than a writer would make it */
	if ((n != len && n != len - 1) || memcmp(line, again, n) != 0)
		abort();
}

static void check_harmless(const char *line, size_t n)
{
	for (size_t i = 0; i + 1 < n;) {
		unsigned point = 0;
		size_t length = text_utf8((const unsigned char *)line + i, &point);

		if (!length || text_acts(point))
			abort();
		i += length;
	}
	if (line[n - 1] != '\n')
		abort();
}

static void check_texts(const uint8_t *bytes, size_t n)
{
	static char line[EVENT_LINE_MAX + 1], scratch[EVENT_LINE_MAX], again[EVENT_LINE_MAX];
	struct ward_event v, read;
	size_t third = n / 3, len;

	v = event_make((enum event_kind)(bytes[0] % EVENT_KINDS),
		       (enum event_action)(bytes[1] % EVENT_ACTIONS), NULL);
	memcpy(&v.seq, bytes, 8);
	memcpy(&v.time_us, bytes + 8, 8);
	v.run = n % 2 ? "20261115-150455-abcdef" : NULL;
	event_bytes(&v, FIELD_OBJECT, (const char *)bytes, third);
	event_list(&v, FIELD_ARGV, (const char *)bytes + third, third);
	event_bytes(&v, FIELD_WHY, (const char *)bytes + 2 * third, n - 2 * third);
	for (unsigned f = 0; f < bytes[2] % EVENT_FIELDS; f++)
		if (event_field_type((enum event_field)f) == EVENT_TEXT)
			event_bytes(&v, (enum event_field)f, (const char *)bytes, third);
		else if (event_field_type((enum event_field)f) == EVENT_NUMBER)
			event_number(&v, (enum event_field)f, v.seq);
	len = event_encode(&v, line);
	if (len + EVENT_TAIL > EVENT_LINE_MAX)
		abort();
	line[len] = '\0';
	check_harmless(line, len);
	if (!event_decode(line, len, scratch, &read, NULL) || read.kind != v.kind ||
	    read.seq != v.seq)
		abort();
	if (event_encode(&read, again) != len || memcmp(line, again, len) != 0)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
	check_line((const char *)bytes, n);
	if (n >= 16)
		check_texts(bytes, n);
	return 0;
}
