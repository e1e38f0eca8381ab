/*
 * Contexts of the code interpreter: a list, with one for each language that is there from the start
 * and that code runs in when no other is named. In: names of clients. Out: contexts, counted: one
 * that was removed while code runs in it goes when that has ended.
 */
#include <signal.h>
#include <string.h>
#include <sys/random.h>

#include "base/json.h"
#include "envd/interpreter.h"
#include "envd/person.h"

#define CONTEXTS_MAX 64

static const struct language languages[] = {
	{ "python", "py", "python3", true },
	{ "javascript", "js", "node", false },
	{ "typescript", "ts", "node", false },
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct context *all;

const struct language *context_language(const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(languages); i++)
		if (strcmp(name, languages[i].name) == 0 || strcmp(name, languages[i].alias) == 0)
			return &languages[i];
	return NULL;
}

static bool make_id(char ret[37])
{
	uint8_t b[16];

	if (getrandom(b, sizeof(b), 0) != sizeof(b))
		return false;
	b[6] = (uint8_t)((b[6] & 0x0f) | 0x40);
	b[8] = (uint8_t)((b[8] & 0x3f) | 0x80);
	snprintf(ret, 37, "%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x",
		 b[0], b[1], b[2], b[3], b[4], b[5], b[6], b[7], b[8], b[9], b[10], b[11], b[12],
		 b[13], b[14], b[15]);
	return true;
}

/* Behind all others: clients expect the newest last. */
static void add(struct context *c)
{
	struct context **at = &all;

	while (*at)
		at = &(*at)->next;
	*at = c;
}

static struct context *make(const struct language *l, const char *cwd, bool usual)
{
	struct context *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->cwd = strdup(cwd);
	if (!c->cwd || !make_id(c->id)) {
		free(c->cwd);
		free(c);
		return NULL;
	}
	c->language = l;
	c->usual = usual;
	c->fd = -1;
	c->count = 2; /* the list's, and the caller's */
	pthread_mutex_init(&c->run, NULL);
	add(c);
	return c;
}

struct context *context_new(const struct language *l, const char *cwd, bool usual)
{
	struct context *c = NULL;
	size_t n = 0;

	pthread_mutex_lock(&lock);
	for (struct context *o = all; o; o = o->next)
		n++;
	if (n < CONTEXTS_MAX)
		c = make(l, cwd, usual);
	pthread_mutex_unlock(&lock);
	return c;
}

struct context *context_find(const char *id)
{
	struct context *c;

	pthread_mutex_lock(&lock);
	for (c = all; c && strcmp(c->id, id) != 0; c = c->next)
		;
	if (c)
		c->count++;
	pthread_mutex_unlock(&lock);
	return c;
}

struct context *context_usual(const struct language *l)
{
	struct person person = { 0 };
	struct context *c;

	(void)!person_find(NULL, &person);
	pthread_mutex_lock(&lock);
	for (c = all; c && !(c->usual && c->language == l); c = c->next)
		;
	if (c)
		c->count++;
	else
		c = make(l, person.home, true);
	pthread_mutex_unlock(&lock);
	return c;
}

void context_drop(struct context *c)
{
	bool last;

	pthread_mutex_lock(&lock);
	last = --c->count == 0;
	pthread_mutex_unlock(&lock);
	if (!last)
		return;
	own_close_fd(&c->fd);
	pthread_mutex_destroy(&c->run);
	free(c->cwd);
	free(c);
}

/* To the kernel and what it has started; c->pid is of a group of its own. */
static void signal_kernel(const struct context *c, int number)
{
	if (c->pid > 1 && kill(-c->pid, number) < 0)
		kill(c->pid, number);
}

void context_remove(struct context *c)
{
	bool found = false;

	pthread_mutex_lock(&lock);
	for (struct context **at = &all; *at && !found; at = found ? at : &(*at)->next)
		if (*at == c) {
			*at = c->next;
			found = true;
		}
	signal_kernel(c, SIGKILL);
	pthread_mutex_unlock(&lock);
	if (found)
		context_drop(c);
}

void context_end_kernel(struct context *c)
{
	pthread_mutex_lock(&lock);
	signal_kernel(c, SIGKILL);
	c->pid = 0;
	pthread_mutex_unlock(&lock);
}

void context_interrupt(struct context *c)
{
	pthread_mutex_lock(&lock);
	signal_kernel(c, SIGINT);
	pthread_mutex_unlock(&lock);
}

void context_show(const struct context *c, struct json *j)
{
	json_begin_object(j, NULL);
	json_string(j, "id", c->id);
	json_string(j, "language", c->language->name);
	json_string(j, "cwd", c->cwd);
	json_end_object(j);
}

void context_list(struct buf *out)
{
	struct json j = { .out = out };

	json_begin_array(&j, NULL);
	pthread_mutex_lock(&lock);
	for (const struct context *c = all; c; c = c->next)
		context_show(c, &j);
	pthread_mutex_unlock(&lock);
	json_end_array(&j);
}
