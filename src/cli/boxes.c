/*
 * What the verbs about detached sandboxes share: from arguments to sandboxes, and how several of
 * them are reported. In: the options. Out: entries, with an error for each word that names none;
 * one that is wrong does not keep the others from being done.
 */
#include "cli/boxes.h"

#include <errno.h>
#include <string.h>

#include "base/json.h"

void chosen_fail(const struct options *o, struct chosen *c, size_t i, const struct ward_err *e,
		 int *ret_code)
{
	*ret_code = say_error(e, o->json, EXIT_REFUSED);
	c->failed[i] = true;
	client_close(&c->clients[i]);
}

void chosen_clear(struct chosen *c)
{
	for (size_t i = 0; i < c->len; i++) {
		box_info_clear(&c->infos[i]);
		client_close(&c->clients[i]);
	}
	free(c->infos);
	free(c->clients);
	free(c->failed);
	*c = (struct chosen){ 0 };
}

static bool make_room(struct chosen *c, size_t n)
{
	c->infos = calloc(n + 1, sizeof(*c->infos));
	c->clients = calloc(n + 1, sizeof(*c->clients));
	c->failed = calloc(n + 1, sizeof(*c->failed));
	return c->infos && c->clients && c->failed;
}

static bool has(const struct chosen *c, const char *id)
{
	for (size_t i = 0; i < c->len; i++)
		if (strcmp(c->infos[i].id, id) == 0)
			return true;
	return false;
}

static void take(struct chosen *c, struct box_info *i)
{
	c->clients[c->len] = NO_CLIENT;
	c->infos[c->len++] = *i;
	*i = (struct box_info){ 0 };
}

static int choose_all(unsigned flags, struct chosen *c, struct ward_err *e)
{
	struct boxes all;
	int r = boxes_list(&all, e);

	if (r < 0)
		return r;
	client_recover(&all);
	if (!make_room(c, all.len))
		r = ward_fail(e, ENOMEM, "out of memory");
	for (size_t i = 0; r == 0 && i < all.len; i++)
		if (all.items[i].alive || !(flags & CHOOSE_ALIVE))
			take(c, &all.items[i]);
	boxes_clear(&all);
	return r;
}

void boxes_choose(const struct options *o, unsigned flags, struct chosen *ret_chosen, int *ret_code)
{
	struct chosen *c = ret_chosen;
	struct ward_err e = { 0 };

	*c = (struct chosen){ 0 };
	*ret_code = EXIT_FINE;
	if (flags & CHOOSE_ALL && o->all) {
		if (choose_all(flags, c, &e) < 0)
			*ret_code = say_error(&e, o->json, EXIT_REFUSED);
		return;
	}
	if (!make_room(c, o->word_count)) {
		ward_fail(&e, ENOMEM, "out of memory");
		*ret_code = say_error(&e, o->json, EXIT_REFUSED);
		return;
	}
	for (size_t i = 0; i < o->word_count; i++) {
		struct box_info info = { 0 };
		int r = flags & CHOOSE_ALIVE ? client_find_alive(o->words[i], &info, &e)
					     : client_find(o->words[i], &info, &e);

		if (r < 0)
			*ret_code = say_error(&e, o->json, EXIT_REFUSED);
		else if (!has(c, info.id))
			take(c, &info);
		box_info_clear(&info);
		e = (struct ward_err){ 0 };
	}
}

void boxes_look_again(struct box_info *i)
{
	struct box_info now = { 0 };
	struct ward_err ignored = { 0 };

	if (boxes_look(i->id, &now, &ignored) < 0)
		return;
	box_info_clear(i);
	*i = now;
}

int boxes_report(const struct options *o, struct chosen *c, int code)
{
	auto_buf out = { 0 };
	struct json j = { .out = &out };

	if (!o->json)
		return code;
	json_begin_list(&j, "sandboxes");
	for (size_t i = 0; i < c->len; i++) {
		if (c->failed[i])
			continue;
		boxes_look_again(&c->infos[i]);
		json_begin_object(&j, NULL);
		boxes_json(&j, &c->infos[i]);
		json_end_object(&j);
	}
	json_end_list(&j);
	return say_out(&out, code);
}

int boxes_freeze(const struct box_info *i, struct ward_err *e)
{
	struct client c = NO_CLIENT;
	int r = client_connect(i, &c, e);

	if (r == 0)
		r = client_ask(&c, CONTROL_PAUSE, 0, 0, 0, e);
	client_close(&c);
	return r < 0 ? ward_wrap(e, "cannot freeze %s", i->id) : 0;
}
