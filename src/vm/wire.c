/*
 * Frames between ward-vm and the guest, both sides' code. In: bytes of the serial port, which on
 * the host's side a hostile guest chose. Out: a frame whose type, sender, length, channel and
 * stream a row of the table allows; what a number in it means is the session's to judge. Pure
 * functions. Numbers are the machine's own: both sides run on one.
 */
#include "vm/wire.h"

#include <errno.h>
#include <string.h>

#define HOST 1u
#define GUEST 2u
#define NO_CHANNEL 4u  /* it is about the guest as a whole */
#define ANY_CHANNEL 8u /* or about a channel */

struct row {
	unsigned flags;
	unsigned host_streams, guest_streams; /* bits: in which streams a side may send it */
	size_t min, max;
};

static const struct row rows[VM_TYPES] = {
	[VM_READY] = { GUEST | NO_CHANNEL, 1, 1, sizeof(struct vm_ready), sizeof(struct vm_ready) },
	[VM_TIME] = { HOST | NO_CHANNEL, 1, 1, sizeof(struct vm_time), sizeof(struct vm_time) },
	[VM_SETUP] = { HOST | NO_CHANNEL, 1, 1, sizeof(struct vm_setup_frame),
		       sizeof(struct vm_setup_frame) },
	[VM_WORDS] = { HOST, 1, 1, 1, VM_PAYLOAD_MAX },
	[VM_START] = { HOST, 1, 1, sizeof(struct vm_start), sizeof(struct vm_start) },
	[VM_DATA] = { HOST | GUEST, 1, 7, 1, VM_PAYLOAD_MAX },
	[VM_WINDOW] = { HOST | GUEST, 7, 1, 4, 4 },
	[VM_EOF] = { HOST | GUEST, 1, 7, 0, 0 },
	[VM_BROKEN] = { HOST | GUEST, 7, 1, 0, 0 },
	[VM_SIGNAL] = { HOST, 1, 1, 4, 4 },
	[VM_RESIZE] = { HOST, 1, 1, sizeof(struct vm_resize), sizeof(struct vm_resize) },
	[VM_STOPPED] = { GUEST, 1, 1, 4, 4 },
	[VM_EXIT] = { GUEST, 1, 1, 4, 4 },
	[VM_ERROR] = { GUEST | ANY_CHANNEL, 1, 1, sizeof(struct vm_error),
		       sizeof(struct vm_error) + VM_ERROR_TEXT },
	[VM_QUIESCE] = { HOST | NO_CHANNEL, 1, 1, 0, 0 },
	[VM_QUIET] = { GUEST | NO_CHANNEL, 1, 1, 0, 0 },
	[VM_ECHO] = { HOST | GUEST | NO_CHANNEL, 1, 1, 0, VM_ECHO_MAX },
};

static bool row_allows(const struct row *row, bool from_guest, unsigned stream, uint32_t channel,
		       uint32_t len)
{
	unsigned streams = from_guest ? row->guest_streams : row->host_streams;

	if (!(row->flags & (from_guest ? GUEST : HOST)) || len < row->min || len > row->max)
		return false;
	if (stream >= VM_STREAMS || !(streams & 1u << stream) || channel >= VM_CHANNELS)
		return false;
	if (row->flags & ANY_CHANNEL)
		return true;
	return !(row->flags & NO_CHANNEL) == (channel != 0);
}

long wire_parse(const uint8_t *bytes, size_t n, bool from_guest, struct vm_frame *ret)
{
	uint16_t magic;
	uint32_t channel, len;

	if (n < VM_HEAD_BYTES)
		return 0;
	memcpy(&magic, bytes, 2);
	memcpy(&channel, bytes + 4, 4);
	memcpy(&len, bytes + 8, 4);
	if (magic != VM_MAGIC || bytes[2] >= VM_TYPES ||
	    !row_allows(&rows[bytes[2]], from_guest, bytes[3], channel, len))
		return -EPROTO;
	if (n - VM_HEAD_BYTES < len)
		return 0;
	*ret = (struct vm_frame){ .type = bytes[2],
				  .stream = bytes[3],
				  .channel = channel,
				  .payload = bytes + VM_HEAD_BYTES,
				  .len = len };
	return (long)(VM_HEAD_BYTES + len);
}

uint8_t *wire_payload(uint8_t *out)
{
	return out + VM_HEAD_BYTES;
}

size_t wire_put(uint8_t *out, enum vm_type type, unsigned channel, unsigned stream,
		const void *payload, size_t n)
{
	uint16_t magic = VM_MAGIC;
	uint32_t number = channel, len = (uint32_t)n;

	memcpy(out, &magic, 2);
	out[2] = (uint8_t)type;
	out[3] = (uint8_t)stream;
	memcpy(out + 4, &number, 4);
	memcpy(out + 8, &len, 4);
	if (n && payload != out + VM_HEAD_BYTES)
		memcpy(out + VM_HEAD_BYTES, payload, n);
	return VM_HEAD_BYTES + n;
}

uint32_t wire_number(const struct vm_frame *f)
{
	uint32_t number = 0;

	if (f->len == sizeof(number))
		memcpy(&number, f->payload, sizeof(number));
	return number;
}

bool wire_check_words(const char *words, size_t n, uint32_t argc, uint32_t envc)
{
	uint64_t want = 1 + (uint64_t)argc + envc, count = 0;

	if (!argc || !n || n > VM_WORDS_MAX || words[n - 1])
		return false;
	for (size_t i = 0; i < n; i++)
		count += !words[i];
	return count == want;
}
