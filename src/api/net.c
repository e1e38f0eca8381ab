/*
 * The network of a box: what it may reach, seen and changed while it runs. Each call is one
 * connection to the box's supervisor, as `ward net` makes it.
 */
#include <errno.h>
#include <string.h>

#include "api/process.h"
#include "control/client_net.h"

int ward_net_show(struct ward_box *b, char **ret_json, struct ward_error *e)
{
	struct ward_err inner = { 0 };
	struct client c = NO_CLIENT;
	struct client_net n = { 0 };
	auto_buf out = { 0 };
	struct json j = { .out = &out };
	int r = box_reach(b, &c, &inner);

	if (r == 0)
		r = client_net_show(&c, &n, &inner);
	client_close(&c);
	if (r == 0) {
		json_begin_object(&j, NULL);
		json_string(&j, "id", b->id);
		json_string(&j, "name", *b->name ? b->name : NULL);
		client_net_json(&j, &n);
		json_end_object(&j);
		*ret_json = buf_take(&out);
		r = *ret_json ? 0 : ward_fail(&inner, ENOMEM, "out of memory");
	}
	client_net_clear(&n);
	return r < 0 ? api_fail(e, &inner) : 0;
}

static int change(struct ward_box *b, bool deny, const char *const rules[], unsigned seconds,
		  struct ward_error *e)
{
	struct ward_err inner = { 0 };
	struct client c = NO_CLIENT;
	struct control_net now;
	size_t count = 0;
	int r = box_reach(b, &c, &inner);

	while (rules && rules[count])
		count++;
	if (r == 0)
		r = client_net_change(&c, deny, (char *const *)(uintptr_t)rules, count, seconds,
				      &now, &inner);
	client_close(&c);
	return r < 0 ? api_fail(e, &inner) : 0;
}

int ward_net_allow(struct ward_box *b, const char *const rules[], unsigned seconds,
		   struct ward_error *e)
{
	return change(b, false, rules, seconds, e);
}

int ward_net_deny(struct ward_box *b, const char *const rules[], unsigned seconds,
		  struct ward_error *e)
{
	return change(b, true, rules, seconds, e);
}
