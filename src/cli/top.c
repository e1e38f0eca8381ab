/*
 * ward top: what sandboxes use now. In: the register, and what each supervisor answers. Out: a
 * table of 80 columns that is drawn anew each second until q, or one table (--once, or standard
 * output is no terminal), or JSON. All are asked before any answer is waited for, and one that does
 * not answer costs the others nothing but its own row. Commands are a sandbox's choice: escaped.
 */
#include "cli/boxes.h"
#include "cli/ps.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <termios.h>
#include <time.h>

#include "base/io.h"
#include "control/client_net.h"

#define ROUND_MS 1000
#define ONCE_MS 250    /* between the two looks that a share of the processor takes */
#define ANSWER_MS 1000 /* one that takes longer has no numbers in this round */

/* What is known of one sandbox. */
struct row {
	struct box_info info;
	struct control_usage usage;
	struct control_net net;
	bool known, networked;
	double cpu; /* per cent of one processor; below 0: not known yet */
};

struct look {
	struct row *rows;
	size_t len;
	uint64_t at_ms;
};

static volatile sig_atomic_t top_ended;

static void on_signal(int number unused_arg)
{
	top_ended = 1;
}

static void look_clear(struct look *l)
{
	for (size_t i = 0; i < l->len; i++)
		box_info_clear(&l->rows[i].info);
	free(l->rows);
	*l = (struct look){ 0 };
}

static int left_ms(uint64_t until)
{
	uint64_t now = io_now_ms();

	return now < until ? (int)(until - now) : 0;
}

/* The network is asked behind the rest: one without a network refuses. */
static void ask_net(struct client *c, struct row *r)
{
	struct client_net n = { 0 };
	struct ward_err none = { 0 };

	if (client_net_show_now(c, &n.now, &none) < 0)
		return;
	r->net = n.now;
	r->networked = true;
}

static void ask_rows(struct look *l, struct client *clients)
{
	uint64_t until = io_now_ms() + ANSWER_MS;

	for (size_t i = 0; i < l->len; i++) {
		struct ward_err none = { 0 };

		clients[i] = NO_CLIENT;
		if (client_connect(&l->rows[i].info, &clients[i], &none) == 0 &&
		    client_send(&clients[i], CONTROL_STATS, 0, 0, 0, &none) < 0)
			client_close(&clients[i]);
	}
	for (size_t i = 0; i < l->len; i++) {
		struct row *r = &l->rows[i];
		struct client_answer a;
		struct ward_err none = { 0 };

		if (clients[i].fd >= 0 &&
		    client_receive(&clients[i], &a, left_ms(until), &none) == 0 &&
		    a.message.op == CONTROL_USAGE) {
			r->usage = a.usage;
			r->known = true;
			ask_net(&clients[i], r);
		}
		client_close(&clients[i]);
	}
}

/* The share of the processor since the look before. */
static void compare(struct look *now, const struct look *before)
{
	for (size_t i = 0; i < now->len; i++) {
		struct row *r = &now->rows[i];

		r->cpu = -1;
		for (size_t k = 0; k < before->len; k++) {
			const struct row *b = &before->rows[k];

			if (b->known && r->known && strcmp(b->info.id, r->info.id) == 0 &&
			    b->usage.cpu_ms <= r->usage.cpu_ms && now->at_ms > before->at_ms)
				r->cpu = 100.0 * (double)(r->usage.cpu_ms - b->usage.cpu_ms) /
					 (double)(now->at_ms - before->at_ms);
		}
	}
}

static int take_look(struct look *ret, struct ward_err *e)
{
	auto_free struct client *clients = NULL;
	struct boxes all;
	int r = client_list(&all, e);

	*ret = (struct look){ 0 };
	if (r < 0)
		return r;
	client_recover(&all);
	ret->rows = calloc(all.len + 1, sizeof(*ret->rows));
	clients = calloc(all.len + 1, sizeof(*clients));
	if (!ret->rows || !clients)
		r = ward_fail(e, ENOMEM, "out of memory");
	for (size_t i = 0; r == 0 && i < all.len; i++)
		if (all.items[i].alive) {
			ret->rows[ret->len++].info = all.items[i];
			all.items[i] = (struct box_info){ 0 };
		}
	boxes_clear(&all);
	ret->at_ms = io_now_ms();
	if (r == 0)
		ask_rows(ret, clients);
	return r;
}

/* ---- the table ---- */

/* "512", "1.4K", "23M": at most five characters */
static void format_bytes(uint64_t bytes, char *out, size_t n)
{
	static const char units[] = "BKMGTPE";
	double value = (double)bytes;
	size_t unit = 0;

	while (value >= 999.5 && unit + 2 < sizeof(units)) {
		value /= 1024;
		unit++;
	}
	if (unit && value < 9.95)
		snprintf(out, n, "%.1f%c", value, units[unit]);
	else
		snprintf(out, n, "%.0f%c", value, units[unit]);
}

static uint64_t denials_of(const struct row *r)
{
	return r->usage.denials + (r->networked ? r->net.denied : 0);
}

static void put_row(const struct row *r, uint64_t now_ms, size_t columns, struct buf *out)
{
	const char *tail = strrchr(r->info.id, '-');
	char age[24], memory[16] = "-", in[16] = "-", sent[16] = "-", cpu[16] = "-",
		      denied[24] = "-";

	ps_format_age(r->info.started_ms, now_ms, age, sizeof(age));
	if (r->known) {
		format_bytes(r->usage.memory_bytes, memory, sizeof(memory));
		snprintf(denied, sizeof(denied), "%" PRIu64, denials_of(r));
	}
	if (r->known && r->networked) {
		format_bytes(r->net.bytes_in, in, sizeof(in));
		format_bytes(r->net.bytes_out, sent, sizeof(sent));
	}
	if (r->known && r->cpu >= 0)
		snprintf(cpu, sizeof(cpu), "%.1f", r->cpu);
	buf_printf(out, "%-7.7s %-12.12s %-8s %4s %6s %6s %6s %6s %5s  ",
		   tail ? tail + 1 : r->info.id, r->info.name[0] ? r->info.name : "-",
		   r->info.foreground ? "foregr." : box_state_name(r->info.state), age, cpu, memory,
		   in, sent, denied);
	ps_put_command(&r->info, columns - 70, true, out);
}

static void put_table(const struct look *l, struct buf *out)
{
	size_t columns = ps_columns();
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	buf_printf(out, "%-7s %-12s %-8s %4s %6s %6s %6s %6s %5s  %s\n", "ID", "NAME", "STATE",
		   "AGE", "CPU%", "MEMORY", "IN", "OUT", "DENY", "COMMAND");
	for (size_t i = 0; i < l->len; i++)
		put_row(&l->rows[i], (uint64_t)now.tv_sec * 1000, columns, out);
	if (!l->len)
		buf_puts(out, "no sandbox is running\n");
}

static int print_json(const struct look *l)
{
	auto_buf out = { 0 };
	struct json j = { .out = &out };

	json_begin_list(&j, "sandboxes");
	for (size_t i = 0; i < l->len; i++) {
		const struct row *r = &l->rows[i];

		json_begin_object(&j, NULL);
		boxes_json(&j, &r->info);
		json_bool(&j, "answers", r->known);
		if (r->known) {
			boxes_usage_json(&j, &r->usage);
			json_uint(&j, "cpu_percent", r->cpu < 0 ? 0 : (uint64_t)(r->cpu + 0.5));
			json_uint(&j, "bytes_in", r->net.bytes_in);
			json_uint(&j, "bytes_out", r->net.bytes_out);
			json_uint(&j, "network_denials", r->networked ? r->net.denied : 0);
		}
		json_end_object(&j);
	}
	json_end_list(&j);
	return say_out(&out, EXIT_FINE);
}

/* ---- once, or until q ---- */

static void pause_ms(int ms)
{
	const struct timespec t = { .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L };

	nanosleep(&t, NULL);
}

static int show_once(const struct options *o)
{
	struct look first, second = { 0 };
	struct ward_err e = { 0 };
	int code = EXIT_FINE;

	if (take_look(&first, &e) < 0)
		return say_error(&e, o->json, EXIT_REFUSED);
	if (first.len)
		pause_ms(ONCE_MS);
	if (take_look(&second, &e) < 0) {
		code = say_error(&e, o->json, EXIT_REFUSED);
	} else {
		auto_buf out = { 0 };

		compare(&second, &first);
		put_table(&second, &out);
		code = o->json ? print_json(&second) : say_out(&out, EXIT_FINE);
	}
	look_clear(&first);
	look_clear(&second);
	return code;
}

/* Waits for the next round; true: somebody has pressed q, or the terminal is gone. */
static bool wait_for_key(int ms)
{
	uint64_t until = io_now_ms() + (uint64_t)ms;
	struct pollfd p = { .fd = STDIN_FILENO, .events = POLLIN };

	while (!top_ended && left_ms(until) && poll(&p, 1, left_ms(until)) > 0) {
		char key;
		ssize_t n = read(STDIN_FILENO, &key, 1);

		if (n == 0 || (n < 0 && errno != EINTR) || key == 'q' || key == 'Q')
			return true;
	}
	return top_ended;
}

static int show_live(const struct options *o)
{
	struct look before = { 0 };
	struct ward_err e = { 0 };
	int code = EXIT_FINE;

	for (bool over = false; !over && code == EXIT_FINE;) {
		struct look now;
		auto_buf out = { 0 };

		if (take_look(&now, &e) < 0) {
			code = say_error(&e, o->json, EXIT_REFUSED);
			break;
		}
		compare(&now, &before);
		buf_puts(&out, "\033[H\033[J");
		put_table(&now, &out);
		buf_puts(&out, "\nq ends; ward stop ID ends a sandbox\n");
		code = say_out(&out, EXIT_FINE);
		look_clear(&before);
		before = now;
		over = code != EXIT_FINE || wait_for_key(ROUND_MS);
	}
	look_clear(&before);
	return code;
}

int verb_top(struct options *o)
{
	static const char enter[] = "\033[?1049h\033[?25l", leave[] = "\033[?25h\033[?1049l";
	struct sigaction act = { .sa_handler = on_signal };
	struct termios old, raw;
	int code;

	if (o->once || o->json || !isatty(STDOUT_FILENO) || tcgetattr(STDIN_FILENO, &old) < 0)
		return show_once(o);
	for (size_t i = 0; i < 3; i++)
		sigaction((const int[]){ SIGINT, SIGTERM, SIGHUP }[i], &act, NULL);
	raw = old;
	raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
	tcsetattr(STDIN_FILENO, TCSANOW, &raw);
	(void)!write(STDOUT_FILENO, enter, sizeof(enter) - 1);
	code = show_live(o);
	(void)!write(STDOUT_FILENO, leave, sizeof(leave) - 1);
	tcsetattr(STDIN_FILENO, TCSANOW, &old);
	return code;
}
