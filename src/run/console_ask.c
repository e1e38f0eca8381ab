/*
 * Questions on the operator's terminal. In: the queue's first question, keys, the time. Out: what
 * term/prompt.c makes of them, through the buffers of console.c, so that nothing here waits for a
 * terminal that is stopped: then the question is not seen, and its time passes. The one exception
 * is the question to the terminal where its cursor is, when it becomes ours: WHERE_MS at most. Only
 * a terminal that can show a second screen gets a bar; for any other, and in the background, the
 * caller says on standard error what waits.
 */
#include <errno.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/random.h>

#include "base/io.h"
#include "run/console_internal.h"
#include "term/prompt.h"

#define WHERE_MS 300
#define LATE_MS 5000 /* a terminal far away may answer later */
#define CHUNK_BYTES 4096

/* ---- what can show it ---- */

/* Terminals without a second screen, by the beginning of their names. */
static bool is_simple(const char *name)
{
	static const char *const names[] = { "dumb", "unknown", "linux", "cons",  "vt1",    "vt2",
					     "vt52", "ansi",    "sun",   "emacs", "network" };

	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (strncmp(name, names[i], strlen(names[i])) == 0)
			return true;
	return !*name;
}

static bool can_show(const struct console *c)
{
	const char *name = getenv("TERM");

	return c->tty_fd >= 0 && !c->shared && !c->unfiltered && name && !is_simple(name);
}

bool console_shows_questions(const struct console *c)
{
	return c->prompt && c->raw;
}

/* ---- where the cursor is ---- */

/* Takes "ESC [ ROW ; COLUMN R" out of what was read; how much is left. */
static size_t take_place(char *bytes, size_t n, unsigned *ret_row, unsigned *ret_col)
{
	for (size_t i = 0; i + 1 < n; i++) {
		unsigned numbers[2] = { 0, 0 }, count = 0;
		size_t at = i + 2;

		if (bytes[i] != 0x1b || bytes[i + 1] != '[')
			continue;
		for (; at < n && count < 2; at++) {
			if (bytes[at] >= '0' && bytes[at] <= '9' && numbers[count] < 10000)
				numbers[count] = numbers[count] * 10 + (unsigned)(bytes[at] - '0');
			else if (bytes[at] == (count ? 'R' : ';'))
				count++;
			else
				break;
		}
		if (count != 2 || !numbers[0] || !numbers[1])
			continue;
		*ret_row = numbers[0] - 1;
		*ret_col = numbers[1] - 1;
		memmove(bytes + i, bytes + at, n - at);
		return n - (at - i);
	}
	return n;
}

/* Asks the terminal. What else is typed meanwhile is the program's. */
static bool find_place(struct console *c, unsigned *ret_row, unsigned *ret_col)
{
	static const char where[] = "\x1b[6n";
	uint64_t until = io_now_ms() + WHERE_MS, now;
	char bytes[CHUNK_BYTES];
	size_t n = 0, left;

	if (write(c->tty_fd, where, strlen(where)) != (ssize_t)strlen(where))
		return false;
	while ((now = io_now_ms()) < until && n < sizeof(bytes)) {
		struct pollfd p = { .fd = c->tty_fd, .events = POLLIN };
		ssize_t got;

		if (poll(&p, 1, (int)(until - now)) <= 0)
			continue;
		got = read(c->tty_fd, bytes + n, sizeof(bytes) - n);
		if (got <= 0)
			break; /* the next read says why */
		n += (size_t)got;
		left = take_place(bytes, n, ret_row, ret_col);
		if (left < n) {
			buf_add(&c->in, bytes, left);
			return true;
		}
	}
	buf_add(&c->in, bytes, n);
	c->place_wait_ms = io_now_ms() + LATE_MS;
	return false;
}

/* ---- the terminal comes and goes ---- */

void console_ask_take(struct console *c)
{
	struct winsize size = { .ws_row = 24, .ws_col = 80 };
	unsigned row, col = 0;
	bool alternate;
	struct ward_err e;

	if (!c->prompt)
		return;
	if (prompt_is_shown(c->prompt, &alternate)) { /* somebody else has had the terminal */
		prompt_repaint(c->prompt);
		return;
	}
	if (ioctl(c->tty_fd, TIOCGWINSZ, &size) < 0 || !size.ws_row || !size.ws_col)
		size = (struct winsize){ .ws_row = 24, .ws_col = 80 };
	row = size.ws_row - 1U; /* where it is in a shell that has been used */
	(void)find_place(c, &row, &col);
	(void)!write(c->tty_fd, "\x1b[?2004h", 8);
	if (prompt_begin(c->prompt, size.ws_row, size.ws_col, row, col, &e) < 0) {
		prompt_destroy(c->prompt);
		c->prompt = NULL;
	}
}

void console_ask_give(struct console *c)
{
	if (c->prompt)
		prompt_end(c->prompt, &c->out, &c->in);
}

void console_ask_undo(const struct console *c, struct buf *out)
{
	bool alternate;

	if (!c->prompt)
		return;
	if (prompt_is_shown(c->prompt, &alternate)) {
		buf_puts(out, "\x1b[r\x1b[?7h");
		if (!alternate)
			buf_puts(out, "\x1b[?1049l");
		buf_puts(out, "\x1b[?25h");
	}
	buf_puts(out, "\x1b[?2004l");
}

/* ---- while it is ours ---- */

static bool can_write(const struct console *c)
{
	return c->raw && !c->ending && c->out_fd >= 0 && c->out_done == c->out.len;
}

void console_ask_on_time(struct console *c)
{
	uint64_t now = io_now_ms();
	bool can = can_write(c), alternate = false, bar;

	if (!c->prompt)
		return;
	if (can) {
		c->out.len = c->out_done = 0;
		prompt_written(c->prompt, now);
	}
	prompt_on_time(c->prompt, now, can ? &c->out : NULL, &c->in);
	bar = prompt_is_shown(c->prompt, &alternate) && !alternate;
	if (bar != c->keeper_knows_bar && c->raw) {
		c->keeper_knows_bar = bar;
		console_tell_keeper(c, true);
	}
}

void console_ask_keys(struct console *c, char *bytes, size_t n)
{
	uint64_t now = io_now_ms();
	unsigned row, col;
	size_t left = n;

	if (now < c->place_wait_ms)
		left = take_place(bytes, n, &row, &col);
	if (left < n)
		c->place_wait_ms = 0;
	if (left)
		prompt_keys(c->prompt, bytes, left, now, &c->in);
}

int console_ask_wait_ms(const struct console *c)
{
	uint64_t due = c->prompt ? prompt_due_ms(c->prompt, can_write(c)) : 0, now = io_now_ms();

	return !due ? -1 : due <= now ? 0 : (int)(due - now);
}

/* ---- the beginning */

/* Two words by chance: what paints a bar inside cannot know them. */
static int make_word(char word[PROMPT_WORD_MAX])
{
	static const char firsts[][8] = {
		"amber", "azure", "bold",   "brisk",  "broad",  "calm",  "clear",  "cool",
		"coral", "crisp", "dark",   "deep",   "dry",    "early", "fair",   "fast",
		"firm",  "fresh", "gentle", "glad",   "gold",   "grand", "green",  "grey",
		"happy", "hazel", "ivory",  "jade",   "keen",   "kind",  "late",   "light",
		"lilac", "loud",  "lucid",  "maroon", "mellow", "mild",  "misty",  "neat",
		"noble", "olive", "opal",   "pale",   "pearl",  "plain", "proud",  "quick",
		"quiet", "rapid", "ruby",   "rust",   "sandy",  "sharp", "silver", "sleek",
		"solid", "spare", "still",  "sunny",  "swift",  "teal",  "vivid",  "warm"
	};
	static const char seconds[][8] = {
		"acorn",   "anchor", "apple",  "badger", "beacon", "birch",   "bison",  "brook",
		"canyon",  "cedar",  "cliff",  "clover", "comet",  "crane",   "delta",  "dune",
		"eagle",   "ember",  "falcon", "fern",   "finch",  "fjord",   "fox",    "garnet",
		"glacier", "harbor", "hawk",   "heron",  "island", "ivy",     "jaguar", "kestrel",
		"lagoon",  "lark",   "lemur",  "lynx",   "maple",  "meadow",  "moose",  "nebula",
		"oak",     "orchid", "otter",  "owl",    "panda",  "pebble",  "pine",   "plum",
		"quartz",  "raven",  "reef",   "river",  "robin",  "sparrow", "spruce", "stone",
		"thistle", "tiger",  "tulip",  "valley", "walnut", "whale",   "willow", "zebra"
	};
	uint16_t random[2];

	_Static_assert(ARRAY_LEN(firsts) * ARRAY_LEN(seconds) >= 2048, "too easy to guess");
	_Static_assert(65536 % ARRAY_LEN(firsts) == 0 && 65536 % ARRAY_LEN(seconds) == 0,
		       "each equally likely");
	if (getrandom(random, sizeof(random), 0) != (ssize_t)sizeof(random))
		return -errno;
	snprintf(word, PROMPT_WORD_MAX, "%.7s %.7s", firsts[random[0] % ARRAY_LEN(firsts)],
		 seconds[random[1] % ARRAY_LEN(seconds)]);
	return 0;
}

void console_digits(void *context, char ret_digits[2])
{
	uint8_t random[2];

	(void)context;
	/* without random numbers none are right */
	if (getrandom(random, sizeof(random), GRND_NONBLOCK) != (ssize_t)sizeof(random)) {
		memset(ret_digits, 'X', 2);
		return;
	}
	for (size_t i = 0; i < 2; i++)
		ret_digits[i] = (char)('0' + random[i] % 10);
}

int console_ask(struct console *c, const struct prompt_ops *ops, void *context, struct ward_err *e)
{
	char word[PROMPT_WORD_MAX];
	auto_buf said = { 0 };

	if (!can_show(c))
		return 0;
	if (make_word(word) < 0)
		return ward_fail_errno(e, "cannot get a random number");
	c->prompt = prompt_create(ops, context, &c->filter, word);
	if (!c->prompt)
		return ward_fail(e, ENOMEM, "out of memory");
	buf_printf(&said,
		   "ward: questions are shown in a bar with the words [%s]; Ctrl-^ after a pause "
		   "answers\r\n",
		   word);
	explicit_bzero(word, sizeof(word));
	if (c->raw) {
		(void)!write(c->tty_fd, said.data, said.len);
		console_ask_take(c);
		console_tell_keeper(c, true);
	} else {
		buf_add(&c->out, said.data, said.len);
	}
	return 0;
}

void console_asked(struct console *c)
{
	if (c->prompt)
		prompt_changed(c->prompt);
}
