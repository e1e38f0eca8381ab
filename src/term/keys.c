/*
 * The keys that answer a question. In: what the operator types, one read at a time, and the time.
 * Out: the keys of the program, in order and complete, and at most one answer. The chord opens only
 * alone in its read, outside pasted text, and after a pause; a key soon after it shows that both
 * were meant for the program. A yes needs two random digits from the bar before its letter, which a
 * person who does not read the bar hits once in a hundred tries of the whole. ALWAYS, which changes
 * the policy file, is typed a second time, after all of that change was shown. Every other key
 * gives the question up and is dropped. The terminal marks pasted text for ward at all times; a
 * program gets the marks only if it has asked for them. Pure.
 */
#include "term/keys.h"

#include <string.h>

#define MARK_LEN 6

static const char paste_begins[] = "\x1b[200~", paste_ends[] = "\x1b[201~";

static bool enter(struct keys *k, enum keys_state state, uint64_t now_ms)
{
	k->state = state;
	k->since_ms = now_ms;
	k->digits_seen = 0;
	return true;
}

void keys_open(struct keys *k, uint64_t now_ms, const char digits[2])
{
	memcpy(k->digits, digits, sizeof(k->digits));
	k->visible_ms = now_ms;
	k->more = 0;
	enter(k, KEYS_NOTICE, now_ms);
}

/* What was kept from the program and turns out to be its own. */
static void release(struct keys *k, struct buf *out)
{
	if (k->state == KEYS_ARMING)
		buf_add(out, &k->chord, 1);
	buf_add(out, k->held, k->held_len);
	k->held_len = 0;
}

void keys_close(struct keys *k, struct buf *out)
{
	release(k, out);
	k->state = KEYS_NONE;
}

void keys_sure(struct keys *k, uint64_t now_ms)
{
	if (k->state != KEYS_LOOK)
		return;
	k->more = 0;
	enter(k, KEYS_SURE, now_ms);
	k->visible_ms = now_ms;
}

void keys_unsure(struct keys *k, uint64_t now_ms)
{
	if (k->state == KEYS_LOOK || k->state == KEYS_SURE)
		enter(k, KEYS_NOTICE, now_ms);
}

/* One key of SURE, alone in its read. */
static bool take_sure(struct keys *k, char key, uint64_t now_ms)
{
	bool seen = k->seen_all && now_ms >= k->visible_ms + KEYS_VISIBLE_MS;

	k->since_ms = now_ms;
	if (key == '?') {
		k->visible_ms = now_ms;
		return ++k->more > 0;
	}
	if (key == 'A' && !seen && k->always) /* typed twice, or too soon */
		return false;
	if (key != 'A' || !k->always)
		return enter(k, KEYS_NOTICE, now_ms);
	k->answer = QUESTION_ALWAYS;
	return enter(k, KEYS_SETTLE, now_ms);
}

/* One key of ANSWER, alone in its read. */
static bool take_answer(struct keys *k, char key, uint64_t now_ms)
{
	bool yes = k->digits_seen == 2;

	k->since_ms = now_ms;
	if (key == '?' && !k->digits_seen)
		return ++k->more > 0;
	if (key == 'd' || key == 0x1b)
		k->answer = QUESTION_DENY;
	else if (yes && key == 'a')
		k->answer = QUESTION_ONCE;
	else if (yes && key == 's')
		k->answer = QUESTION_RUN;
	else if (yes && key == 't')
		k->answer = QUESTION_TIME;
	else if (yes && key == 'A' && k->always)
		return enter(k, KEYS_LOOK, now_ms);
	else if (!yes && key == k->digits[k->digits_seen])
		return ++k->digits_seen > 0;
	else
		return enter(k, KEYS_NOTICE, now_ms);
	return enter(k, KEYS_SETTLE, now_ms);
}

/* Typed bytes, without marks of pasted text. alone: they are the whole read. */
static bool take_typed(struct keys *k, const char *bytes, size_t n, bool alone, uint64_t now_ms,
		       struct buf *out)
{
	bool pause =
		now_ms >= k->last_ms + KEYS_PAUSE_MS && now_ms >= k->visible_ms + KEYS_VISIBLE_MS;
	bool changed = false;

	switch (k->state) {
	case KEYS_NOTICE:
		if (alone && n == 1 && bytes[0] == k->chord && !k->pasting && pause)
			return enter(k, KEYS_ARMING, now_ms);
		break;
	case KEYS_ARMING:
		release(k, out);
		changed = enter(k, KEYS_NOTICE, now_ms);
		break;
	case KEYS_ANSWER:
		if (n == 1 && alone && !k->pasting)
			return take_answer(k, bytes[0], now_ms);
		return enter(k, KEYS_NOTICE, now_ms);
	case KEYS_SURE:
		if (n == 1 && alone && !k->pasting)
			return take_sure(k, bytes[0], now_ms);
		return enter(k, KEYS_NOTICE, now_ms);
	case KEYS_SETTLE:
	case KEYS_LOOK:
		return enter(k, KEYS_NOTICE, now_ms);
	case KEYS_NONE:
	default:
		break;
	}
	buf_add(out, bytes, n);
	return changed;
}

/* How much of the marker the bytes begin with; MARK_LEN: all of it. */
static size_t match(const char *mark, const char *bytes, size_t n)
{
	size_t i = 0;

	while (i < n && i < MARK_LEN && bytes[i] == mark[i])
		i++;
	return i == n || i == MARK_LEN ? i : 0;
}

static bool take_mark(struct keys *k, bool begins, uint64_t now_ms, struct buf *out)
{
	bool ours = k->paste_is_ours, changed = false;

	if (begins) {
		ours = k->state >= KEYS_ANSWER;
		if (k->state == KEYS_ARMING)
			release(k, out);
		if (ours || k->state == KEYS_ARMING)
			changed = enter(k, KEYS_NOTICE, now_ms);
	}
	k->pasting = begins;
	k->paste_is_ours = begins && ours;
	if (k->program_marks && !ours)
		buf_add(out, begins ? paste_begins : paste_ends, MARK_LEN);
	return changed;
}

/* Bytes up to the next mark, or to the end. */
static bool take_part(struct keys *k, const char *bytes, size_t n, bool alone, uint64_t now_ms,
		      struct buf *out)
{
	if (n == 0 || k->paste_is_ours) /* pasted into an answer: dropped */
		return false;
	return take_typed(k, bytes, n, alone, now_ms, out);
}

bool keys_take(struct keys *k, const char *bytes, size_t n, uint64_t now_ms, struct buf *out)
{
	auto_buf all = { 0 };
	size_t from = 0;
	bool changed = false;

	buf_add(&all, k->held, k->held_len);
	k->held_len = 0;
	buf_add(&all, bytes, n);
	for (size_t i = 0; i < all.len && !all.failed; i++) {
		size_t left = all.len - i, begins = match(paste_begins, all.data + i, left);
		size_t ends = match(paste_ends, all.data + i, left);

		if (begins != MARK_LEN && ends != MARK_LEN) {
			/* a part of a mark at the end; a lone ESC is a key */
			if ((begins < 2 && ends < 2) ||
			    i + (begins > ends ? begins : ends) != all.len)
				continue;
			k->held_len = left;
			memcpy(k->held, all.data + i, left);
			all.len = i;
			break;
		}
		changed |= take_part(k, all.data + from, i - from, false, now_ms, out);
		changed |= take_mark(k, begins == MARK_LEN, now_ms, out);
		i += MARK_LEN - 1;
		from = i + 1;
	}
	changed |= take_part(k, all.data + from, all.len - from, from == 0 && !k->held_len, now_ms,
			     out);
	k->last_ms = now_ms;
	return changed;
}

/* A held part of a mark was no mark: these are keys. */
static bool give_up_mark(struct keys *k, uint64_t now_ms, struct buf *out)
{
	char bytes[sizeof(k->held)];
	size_t n = k->held_len;

	memcpy(bytes, k->held, n);
	k->held_len = 0;
	return take_part(k, bytes, n, false, now_ms, out);
}

uint64_t keys_due_ms(const struct keys *k)
{
	uint64_t mark = k->held_len ? k->last_ms + KEYS_MARKER_MS : 0;

	if (mark)
		return mark;
	switch (k->state) {
	case KEYS_ARMING:
		return k->since_ms + KEYS_ARMING_MS;
	case KEYS_ANSWER:
	case KEYS_LOOK:
	case KEYS_SURE:
		return k->since_ms + KEYS_ANSWER_MS;
	case KEYS_SETTLE:
		return k->since_ms + KEYS_SETTLE_MS;
	case KEYS_NONE:
	case KEYS_NOTICE:
	default:
		return 0;
	}
}

enum question_answer keys_on_time(struct keys *k, uint64_t now_ms, bool *ret_changed,
				  struct buf *out)
{
	uint64_t due = keys_due_ms(k);

	*ret_changed = false;
	if (due == 0 || now_ms < due)
		return 0;
	*ret_changed = true;
	if (k->held_len)
		*ret_changed = give_up_mark(k, now_ms, out);
	else if (k->state == KEYS_ARMING)
		enter(k, KEYS_ANSWER, now_ms);
	else if (k->state == KEYS_SETTLE)
		return k->answer;
	else
		enter(k, KEYS_NOTICE, now_ms);
	return 0;
}
