/*
 * Channels of one guest, the host's side. In: frames that a hostile guest chose (wire.c has looked
 * at their form); what the host wants to say. Out: bytes in inboxes that are never longer than a
 * window, whatever comes; frames made one at a time, when there is room for one. Nothing is queued:
 * signals are bits, sizes and credit are numbers, so a guest that does not read costs nothing. What
 * contradicts itself (data without credit or behind its end, a channel that is not open, an end
 * sent twice, credit for more than a window) ends the session. No I/O, no clock.
 */
#include "vm/session.h"

#include <errno.h>
#include <signal.h>
#include <string.h>

#include "protocol/guest.h"

static struct vm_inbox new_inbox(void)
{
	return (struct vm_inbox){ .credit = VM_WINDOW_BYTES };
}

int session_open(struct vm_session *s, const struct vm_start *start, char *words, size_t words_len,
		 struct ward_err *e)
{
	auto_free char *own = words;

	if (!own || !wire_check_words(own, words_len, start->argc, start->envc))
		return ward_fail(
			e, E2BIG,
			"the arguments and variables of the command are larger than %u bytes",
			VM_WORDS_MAX);
	for (unsigned i = 1; i < VM_CHANNELS; i++) {
		struct vm_channel *c = &s->channels[i];

		if (c->state != VM_FREE)
			continue;
		*c = (struct vm_channel){ .state = VM_OPENING,
					  .start = *start,
					  .words = take_ptr(own),
					  .words_len = words_len,
					  .credit = VM_WINDOW_BYTES };
		for (unsigned k = 0; k < VM_STREAMS; k++)
			c->in[k] = new_inbox();
		return (int)i;
	}
	return ward_fail(e, EAGAIN, "the guest runs as many commands as it can: %u",
			 VM_CHANNELS - 1);
}

void session_close(struct vm_session *s, unsigned channel)
{
	struct vm_channel *c = &s->channels[channel];

	free(c->words);
	for (unsigned i = 0; i < VM_STREAMS; i++)
		free(c->in[i].bytes);
	*c = (struct vm_channel){ .state = VM_FREE };
}

void session_free(struct vm_session *s)
{
	for (unsigned i = 1; i < VM_CHANNELS; i++)
		session_close(s, i);
}

bool session_wants_input(const struct vm_channel *c)
{
	return c->state == VM_RUNNING && c->fill && c->credit && !c->input_ended &&
	       !c->input_broken;
}

void session_taken(struct vm_inbox *in, size_t n)
{
	in->at += n;
	in->len -= n;
	in->owed += (uint32_t)n;
	if (!in->len)
		in->at = 0;
}

void session_break(struct vm_inbox *in)
{
	if (in->broken)
		return;
	session_taken(in, in->len);
	free(in->bytes);
	in->bytes = NULL;
	in->broken = true;
	in->tell_broken = !in->ended;
}

/* ---- what the guest says ---- */

static int lie(struct ward_err *e, const char *what)
{
	ward_fail(e, EPROTO, "the guest broke the protocol: %s", what);
	return ward_remedy(e, "the guest can no longer be trusted: run the command again");
}

static int take_data(struct vm_channel *c, const struct vm_frame *f, struct ward_err *e)
{
	struct vm_inbox *in = &c->in[f->stream];

	if (in->ended)
		return lie(e, "data after the end of its stream");
	if (f->len > in->credit)
		return lie(e, "more data than it was given credit for");
	if (f->stream == 0 && !c->start.terminals)
		return lie(e, "a terminal's data of a command that has none");
	if (f->stream && c->start.terminals & 1u << f->stream)
		return lie(e, "data of a stream that is its terminal");
	in->credit -= (uint32_t)f->len;
	if (in->broken) {
		in->owed += (uint32_t)f->len;
		return 0;
	}
	if (!in->bytes)
		in->bytes = malloc(VM_WINDOW_BYTES);
	if (!in->bytes)
		return ward_fail(e, ENOMEM, "no memory for what the guest sends");
	if (in->at + in->len + f->len > VM_WINDOW_BYTES) {
		memmove(in->bytes, in->bytes + in->at, in->len);
		in->at = 0;
	}
	memcpy(in->bytes + in->at + in->len, f->payload, f->len);
	in->len += f->len;
	return 0;
}

static int take_end(struct vm_channel *c, const struct vm_frame *f, struct ward_err *e)
{
	if (c->in[f->stream].ended)
		return lie(e, "a stream that ends twice");
	c->in[f->stream].ended = true;
	return 0;
}

static int take_credit(struct vm_channel *c, const struct vm_frame *f, struct ward_err *e)
{
	uint32_t more = wire_number(f);

	if (!more || more > VM_WINDOW_BYTES - c->credit)
		return lie(e, "credit for more than a window");
	c->credit += more;
	return 0;
}

/* Whether a signal ends a process that does nothing about it. What another one would do to the
 * process that ends like the command (be stopped, go on, say that a limit was reached) is not the
 * guest's to choose. */
static bool signal_ends(int number)
{
	static const uint64_t others = 1ull << SIGCHLD | 1ull << SIGCONT | 1ull << SIGSTOP |
				       1ull << SIGTSTP | 1ull << SIGTTIN | 1ull << SIGTTOU |
				       1ull << SIGURG | 1ull << SIGWINCH | 1ull << GUEST_SPENT;

	return number >= 1 && number <= 64 && (number == 64 || !(others >> number & 1));
}

static int take_exit(struct vm_channel *c, const struct vm_frame *f)
{
	/* neither stopped nor with a core: an end */
	c->status = (int)(wire_number(f) & 0xff7f);
	c->spent = wire_number(f) & VM_EXIT_SPENT && c->status == SIGKILL;
	if ((c->status & 0x7f) == 0x7f)
		c->status = 255 << 8;
	else if ((c->status & 0x7f) && !signal_ends(c->status & 0x7f))
		c->status = (128 + (c->status & 0x7f)) << 8;
	c->state = VM_ENDED;
	for (unsigned i = 0; i < VM_STREAMS; i++)
		c->in[i].ended = true;
	return 0;
}

static int take_error(struct vm_session *s, struct vm_channel *c, const struct vm_frame *f)
{
	struct vm_error error;
	int code;

	memcpy(&error, f->payload, sizeof(error));
	code = error.code && error.code < 4096 ? (int)error.code : EIO;
	if (c)
		c->error = code;
	else
		s->guest_error = code;
	return 0;
}

static int take_about_guest(struct vm_session *s, const struct vm_frame *f, struct ward_err *e)
{
	if (f->type == VM_ERROR)
		return take_error(s, NULL, f);
	if (f->type == VM_QUIET && s->quiescing && !s->quiet) {
		s->quiet = true;
		return 0;
	}
	if (f->type == VM_ECHO && s->echoing) {
		s->echoing = false;
		s->echoed = true;
		return 0;
	}
	return lie(e, f->type == VM_READY ? "it is ready for the second time"
					  : "an unsolicited answer");
}

int session_take(struct vm_session *s, const struct vm_frame *f, struct ward_err *e)
{
	struct vm_channel *c = &s->channels[f->channel];

	if (!f->channel)
		return take_about_guest(s, f, e);
	if (c->state != VM_RUNNING)
		return lie(e, "a message for a channel that is not open");
	if (f->type == VM_DATA)
		return take_data(c, f, e);
	if (f->type == VM_EOF)
		return take_end(c, f, e);
	if (f->type == VM_WINDOW)
		return take_credit(c, f, e);
	if (f->type == VM_EXIT)
		return take_exit(c, f);
	if (f->type == VM_ERROR)
		return take_error(s, c, f);
	if (f->type == VM_BROKEN)
		c->input_broken = true;
	else if (f->type == VM_STOPPED)
		c->stop_signal = wire_number(f);
	else
		return lie(e, "a frame that guests must not send");
	return 0;
}

/* ---- messages to the guest ---- */

static size_t tell_words(struct vm_channel *c, unsigned channel, uint8_t *out)
{
	size_t left = c->words_len - c->words_at, n = left < VM_DATA_MAX ? left : VM_DATA_MAX;
	const char *at = c->words + c->words_at;

	if (!left) {
		free(c->words);
		c->words = NULL;
		c->state = VM_RUNNING;
		return wire_put(out, VM_START, channel, 0, &c->start, sizeof(c->start));
	}
	c->words_at += n;
	return wire_put(out, VM_WORDS, channel, 0, at, n);
}

static size_t tell_number(uint8_t *out, enum vm_type type, unsigned channel, unsigned stream,
			  uint32_t number)
{
	return wire_put(out, type, channel, stream, &number, sizeof(number));
}

static size_t tell_about_streams(struct vm_channel *c, unsigned channel, uint8_t *out)
{
	for (unsigned i = 0; i < VM_STREAMS; i++) {
		struct vm_inbox *in = &c->in[i];
		uint32_t owed = in->owed;

		if (in->ended)
			continue;
		if (in->tell_broken) {
			in->tell_broken = false;
			return wire_put(out, VM_BROKEN, channel, i, NULL, 0);
		}
		if (owed >= VM_WINDOW_BYTES / 4) {
			in->owed = 0;
			in->credit += owed;
			return tell_number(out, VM_WINDOW, channel, i, owed);
		}
	}
	return 0;
}

static size_t tell_input(struct vm_channel *c, unsigned channel, uint8_t *out)
{
	size_t want = c->credit < VM_DATA_MAX ? c->credit : VM_DATA_MAX;
	ssize_t n;

	if (!c->fill)
		c->input_ended = true;
	if (session_wants_input(c)) {
		n = c->fill(c->ctx, wire_payload(out), want);
		if (n > 0) {
			c->credit -= (uint32_t)n;
			return wire_put(out, VM_DATA, channel, 0, wire_payload(out), (size_t)n);
		}
		c->input_ended = n != -EAGAIN;
	}
	if (!c->input_ended || c->input_end_sent || c->input_broken)
		return 0;
	c->input_end_sent = true;
	return wire_put(out, VM_EOF, channel, 0, NULL, 0);
}

static size_t tell_about(struct vm_channel *c, unsigned channel, uint8_t *out)
{
	size_t n = 0;

	if (c->state == VM_OPENING)
		return tell_words(c, channel, out);
	if (c->state != VM_RUNNING)
		return 0;
	if (c->tell_size) {
		c->tell_size = false;
		return wire_put(out, VM_RESIZE, channel, 0, &c->size, sizeof(c->size));
	}
	if (c->signals) {
		unsigned bit = (unsigned)__builtin_ctzll(c->signals);

		c->signals &= c->signals - 1;
		return tell_number(out, VM_SIGNAL, channel, 0, bit + 1);
	}
	n = tell_about_streams(c, channel, out);
	return n ? n : tell_input(c, channel, out);
}

static bool is_opening(const struct vm_session *s)
{
	for (unsigned i = 1; i < VM_CHANNELS; i++)
		if (s->channels[i].state == VM_OPENING)
			return true;
	return false;
}

size_t session_next(struct vm_session *s, uint8_t *out)
{
	if (s->tell_echo) {
		s->tell_echo = false;
		s->echoing = true;
		return wire_put(out, VM_ECHO, 0, 0, NULL, 0);
	}
	if (s->tell_time) {
		s->tell_time = false;
		return wire_put(out, VM_TIME, 0, 0, &s->time, sizeof(s->time));
	}
	if (s->tell_setup) {
		s->tell_setup = false;
		return wire_put(out, VM_SETUP, 0, 0, &s->setup, sizeof(s->setup));
	}
	if (s->tell_quiesce && !is_opening(s)) { /* nothing may be started behind it */
		s->tell_quiesce = false;
		s->quiescing = true;
		return wire_put(out, VM_QUIESCE, 0, 0, NULL, 0);
	}
	for (unsigned i = 1; i < VM_CHANNELS; i++) {
		unsigned channel = 1 + (s->next + i) % (VM_CHANNELS - 1);
		size_t n = tell_about(&s->channels[channel], channel, out);

		if (n) {
			s->next = channel - 1;
			return n;
		}
	}
	return 0;
}
