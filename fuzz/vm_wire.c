/* Fuzzes what a hostile guest says over virtio-serial: frames into the host's session, whose state
 * stays within its bounds. */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "vm/session.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static ssize_t fill(void *ctx, uint8_t *bytes, size_t n)
{
	unsigned *left = ctx;

	if (!*left)
		return 0;
	if ((*left)-- % 3 == 0)
		return -EAGAIN;
	bytes[0] = bytes[n - 1] = 'x';
	return (ssize_t)n;
}

static void open_one(struct vm_session *s, unsigned terminals, unsigned *left)
{
	struct vm_start start = { .kind = VM_RUN, .argc = 1, .terminals = (uint16_t)terminals };
	struct ward_err e = { 0 };
	char *words = malloc(6);
	int channel;

	memcpy(words, "/\0cmd", 6);
	channel = session_open(s, &start, words, 6, &e);
	if (channel > 0) {
		s->channels[channel].fill = fill;
		s->channels[channel].ctx = left;
	}
}

/* What the host does meanwhile: a byte of the input chooses. */
static void act(struct vm_session *s, uint8_t what, unsigned *left)
{
	struct vm_channel *c = &s->channels[1 + (what >> 4) % 4];
	struct vm_inbox *in = &c->in[what % VM_STREAMS];

	switch (what % 8) {
	case 0:
		session_taken(in, in->len / 2);
		break;
	case 1:
		session_taken(in, in->len);
		break;
	case 2:
		session_break(in);
		break;
	case 3:
		open_one(s, what >> 5, left);
		break;
	case 4:
		if (c->state == VM_ENDED)
			session_close(s, 1 + (what >> 4) % 4);
		break;
	case 5:
		c->signals |= 1ull << (what >> 3);
		break;
	case 6:
		s->tell_quiesce = true;
		break;
	default:
		c->tell_size = true;
	}
}

static void check(const struct vm_session *s)
{
	for (unsigned i = 1; i < VM_CHANNELS; i++) {
		const struct vm_channel *c = &s->channels[i];

		assert(c->credit <= VM_WINDOW_BYTES && (c->status & 0x7f) != 0x7f);
		for (unsigned k = 0; k < VM_STREAMS; k++) {
			const struct vm_inbox *in = &c->in[k];

			assert((uint64_t)in->at + in->len <= VM_WINDOW_BYTES);
			assert((uint64_t)in->credit + in->owed + in->len <= VM_WINDOW_BYTES);
			assert(!in->len || in->bytes);
		}
	}
}

static void speak(struct vm_session *s, uint8_t *out)
{
	for (int i = 0; i < 16; i++) {
		size_t len = session_next(s, out);
		struct vm_frame f;

		if (!len)
			return;
		/* what is said is always well formed */
		assert(wire_parse(out, len, false, &f) == (long)len);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	static struct vm_session s;
	static uint8_t out[VM_FRAME_MAX];
	unsigned left = 12;
	struct ward_err e = { 0 };
	struct vm_frame f;
	long used;
	int r = 0;

	memset(&s, 0, sizeof(s));
	open_one(&s, 0, &left);
	open_one(&s, 7, &left);
	speak(&s, out);
	while (r == 0 && n) {
		act(&s, *data, &left);
		data++;
		n--;
		used = wire_parse(data, n, true, &f);
		if (used <= 0)
			break;
		assert((size_t)used <= n && f.len <= VM_PAYLOAD_MAX && f.channel < VM_CHANNELS);
		r = session_take(&s, &f, &e);
		data += used;
		n -= (size_t)used;
		check(&s);
		speak(&s, out);
		check(&s);
	}
	session_free(&s);
	return 0;
}
