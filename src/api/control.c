/*
 * What can be asked of a box: each is one request over a connection of its own, so threads do not
 * wait for each other.
 */
#include "api/process.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <time.h>

#include "base/io.h"
#include "control/boxes_json.h"
#include "state/log.h"

#define GONE_MS 5000

/* Connects to the box; one that has ended is known to have. */
int box_reach(struct ward_box *b, struct client *ret_client, struct ward_err *e)
{
	struct box_info info = { 0 };
	bool ended;

	pthread_mutex_lock(&b->lock);
	ended = b->ended;
	pthread_mutex_unlock(&b->lock);
	if (ended)
		return ward_fail(e, ESRCH, "the sandbox %s has ended", b->id);
	memcpy(info.id, b->id, sizeof(info.id));
	return client_connect(&info, ret_client, e);
}

static int ask(struct ward_box *b, enum control_op op, int32_t argument, struct ward_error *e)
{
	struct ward_err inner = { 0 };
	struct client c = NO_CLIENT;
	int r = box_reach(b, &c, &inner);

	if (r == 0)
		r = client_ask(&c, op, 0, argument, 0, &inner);
	client_close(&c);
	return r < 0 ? api_fail(e, &inner) : 0;
}

int ward_pause(struct ward_box *b, struct ward_error *e)
{
	return ask(b, CONTROL_PAUSE, 0, e);
}

int ward_resume(struct ward_box *b, struct ward_error *e)
{
	return ask(b, CONTROL_RESUME, 0, e);
}

int ward_kill(struct ward_box *b, struct ward_error *e)
{
	return ask(b, CONTROL_KILL, 0, e);
}

int ward_stop(struct ward_box *b, unsigned grace_ms, struct ward_error *e)
{
	return ask(b, CONTROL_STOP, grace_ms > INT_MAX ? INT_MAX : (int32_t)grace_ms, e);
}

/* Only what is a signal may be asked for. */
static int check_signal(int number, struct ward_error *e)
{
	struct ward_err inner = { 0 };

	if (number >= 1 && number <= 64)
		return 0;
	ward_fail(&inner, EINVAL, "%d is not a signal", number);
	return api_fail(e, &inner);
}

int ward_signal(struct ward_box *b, int signal_number, struct ward_error *e)
{
	int r = check_signal(signal_number, e);

	return r < 0 ? r : ask(b, CONTROL_SIGNAL, signal_number, e);
}

int ward_stats(struct ward_box *b, char **ret_json, struct ward_error *e)
{
	struct client_answer answer = { 0 };
	struct ward_err inner = { 0 };
	struct client c = NO_CLIENT;
	auto_buf out = { 0 };
	struct json j = { .out = &out };
	int r = box_reach(b, &c, &inner);

	if (r == 0)
		r = client_send(&c, CONTROL_STATS, 0, 0, 0, &inner);
	if (r == 0)
		r = client_receive(&c, &answer, CLIENT_ANSWER_MS, &inner);
	client_close(&c);
	if (r == 0 && answer.message.op != CONTROL_USAGE)
		r = ward_fail(&inner, EPROTO, "the sandbox %s sent an unexpected answer", b->id);
	if (r == 0) {
		json_begin_object(&j, NULL);
		json_string(&j, "id", b->id);
		json_string(&j, "name", *b->name ? b->name : NULL);
		boxes_usage_json(&j, &answer.usage);
		json_end_object(&j);
		*ret_json = buf_take(&out);
		r = *ret_json ? 0 : ward_fail(&inner, ENOMEM, "out of memory");
	}
	return r < 0 ? api_fail(e, &inner) : 0;
}

int ward_log(struct ward_box *b, char **ret_text, size_t *ret_bytes, struct ward_error *e)
{
	struct ward_err inner = { 0 };
	auto_fd dir = boxes_open_dir(b->id, &inner);
	auto_buf text = { 0 };
	size_t bytes;
	int r = dir < 0 ? dir : log_read(dir, &text, &inner);

	if (r == 0) {
		buf_add(&text, "", 0);
		bytes = text.len;
		*ret_text = buf_take(&text);
		r = *ret_text ? 0 : ward_fail(&inner, ENOMEM, "out of memory");
		if (r == 0 && ret_bytes)
			*ret_bytes = bytes;
	}
	return r < 0 ? api_fail(e, &inner) : 0;
}

/* Whether the box is alive; one that we know to have ended may need a moment to release its
 * entry. */
static int look_if_alive(struct ward_box *b, bool *ret_alive, struct ward_err *e)
{
	const struct timespec moment = { .tv_nsec = 5000000 };
	uint64_t until = io_now_ms() + GONE_MS;
	bool ended;

	pthread_mutex_lock(&b->lock);
	ended = b->ended;
	pthread_mutex_unlock(&b->lock);
	for (;;) {
		struct box_info info = { 0 };
		int r = boxes_look(b->id, &info, e);

		*ret_alive = info.alive;
		box_info_clear(&info);
		if (r < 0 || !*ret_alive || !ended || io_now_ms() >= until)
			return r;
		nanosleep(&moment, NULL);
	}
}

int ward_remove(struct ward_box *b, struct ward_error *e)
{
	struct ward_err inner = { 0 };
	bool alive = false;
	int r = look_if_alive(b, &alive, &inner);

	if (r == 0 && alive) {
		ward_fail(&inner, EBUSY, "the sandbox %s is still running", b->id);
		r = ward_remedy(&inner, "call ward_stop(), then ward_wait()");
	}
	if (r == 0)
		r = boxes_remove(b->id, &inner);
	return r < 0 ? api_fail(e, &inner) : 0;
}

int ward_list(char **ret_json, struct ward_error *e)
{
	struct ward_err inner = { 0 };
	auto_buf out = { 0 };
	struct json j = { .out = &out };
	struct boxes all;

	if (boxes_list(&all, &inner) < 0)
		return api_fail(e, &inner);
	json_begin_object(&j, NULL);
	json_begin_array(&j, "sandboxes");
	for (size_t i = 0; i < all.len; i++) {
		json_begin_object(&j, NULL);
		boxes_json(&j, &all.items[i]);
		json_end_object(&j);
	}
	json_end_array(&j);
	json_end_object(&j);
	boxes_clear(&all);
	*ret_json = buf_take(&out);
	if (*ret_json)
		return 0;
	ward_fail(&inner, ENOMEM, "out of memory");
	return api_fail(e, &inner);
}

int ward_exec(struct ward_box *b, const struct ward_command *c, struct ward_process **ret_process,
	      struct ward_error *e)
{
	struct ward_err inner = { 0 };
	struct client client = NO_CLIENT;
	int r = process_check(c, &inner);

	if (r == 0)
		r = box_reach(b, &client, &inner);
	if (r == 0)
		r = process_start(&client, c, ret_process, &inner);
	client_close(&client);
	return r < 0 ? api_fail(e, &inner) : 0;
}

int ward_process_signal(struct ward_process *p, int signal_number, struct ward_error *e)
{
	struct ward_err inner = { 0 };
	int r = check_signal(signal_number, e);

	if (r < 0)
		return r;
	r = process_signal(p, signal_number, &inner);
	return r < 0 ? api_fail(e, &inner) : 0;
}
