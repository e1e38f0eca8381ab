/*
 * ward wait: until sandboxes have ended. In: their names. Out: the exit code of each, one a line
 * (with --json their reports, one a line), and as the verb's own exit status the first that is not
 * 0. One whose supervisor was killed has none: 137.
 */
#include "cli/boxes.h"

#include <errno.h>
#include <fcntl.h>

#include "base/io.h"

#define REPORT_MAX (64u << 20)
#define CODE_DEAD 137

static int wait_one(struct box_info *i, struct ward_err *e)
{
	struct client c = NO_CLIENT;
	int r = client_connect_end(i->id, -1, &c, e);

	if (r == 0)
		r = client_wait_end(&c, -1, e);
	client_close(&c);
	boxes_look_again(i);
	return r < 0 && i->alive ? r : 0;
}

static int put_report(const struct box_info *i, struct buf *out, struct ward_err *e)
{
	auto_fd dir = boxes_open_dir(i->id, e);
	int r = dir < 0 ? dir : io_read_file(dir, "result.json", REPORT_MAX, out);

	return r < 0 && dir >= 0 ? ward_fail_errno(e, "cannot read the result of %s", i->id) : r;
}

static int tell(const struct options *o, const struct box_info *i, int *code, struct ward_err *e)
{
	auto_buf out = { 0 };
	int own = i->state == BOX_ENDED ? i->exit_code : CODE_DEAD, r = 0;

	if (o->json && i->state == BOX_ENDED) {
		r = put_report(i, &out, e);
	} else if (o->json) {
		struct json j = { .out = &out };

		json_begin_object(&j, NULL);
		boxes_json(&j, i);
		json_end_object(&j);
		buf_puts(&out, "\n");
	} else {
		buf_printf(&out, "%d\n", own);
	}
	if (r == 0 && *code == EXIT_FINE)
		*code = own;
	if (r == 0)
		*code = say_out(&out, *code);
	return r;
}

int verb_wait(struct options *o)
{
	struct chosen c;
	int code;

	boxes_choose(o, 0, &c, &code);
	for (size_t i = 0; i < c.len; i++) {
		struct ward_err e = { 0 };
		int r = c.infos[i].alive ? wait_one(&c.infos[i], &e) : 0;

		if (r == 0) {
			struct boxes one = { .items = &c.infos[i], .len = 1 };

			client_recover(&one);
			r = tell(o, &c.infos[i], &code, &e);
		}
		if (r < 0)
			chosen_fail(o, &c, i, &e, &code);
	}
	chosen_clear(&c);
	return code;
}
