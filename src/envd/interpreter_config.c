/*
 * The sandbox's variables in the code interpreter. In: messages of the resident ward-envd on
 * descriptor 0: a length, and NAME=VALUE with a NUL behind each. Out: an object of JSON and the
 * number of its version, so that a kernel is told when they have changed. A sandbox that was
 * started ahead of its client learns them last.
 */
#include <string.h>

#include "base/io.h"
#include "envd/interpreter.h"

#define MESSAGE_MAX (256 * 1024)

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct buf come;
static struct buf object;
static unsigned version;

static void take(const char *bytes, size_t n)
{
	struct json j = { .out = &object };

	object.len = 0;
	json_begin_object(&j, NULL);
	for (size_t at = 0; at < n; at += strlen(bytes + at) + 1) {
		const char *equals = strchr(bytes + at, '=');
		auto_free char *name =
			equals ? strndup(bytes + at, (size_t)(equals - (bytes + at))) : NULL;

		if (name)
			json_string(&j, name, equals + 1);
	}
	json_end_object(&j);
	version++;
}

static void take_messages(void)
{
	uint32_t n;

	while (come.len >= sizeof(n)) {
		memcpy(&n, come.data, sizeof(n));
		if (n > MESSAGE_MAX || come.len - sizeof(n) < n)
			return;
		take(come.data + sizeof(n), n);
		come.len -= sizeof(n) + n;
		memmove(come.data, come.data + sizeof(n) + n, come.len);
		come.data[come.len] = '\0';
	}
}

void variables_refresh(void)
{
	char bytes[4096];
	ssize_t n;

	pthread_mutex_lock(&lock);
	while ((n = read(0, bytes, sizeof(bytes))) > 0 && come.len < 2 * MESSAGE_MAX)
		buf_add(&come, bytes, (size_t)n);
	take_messages();
	pthread_mutex_unlock(&lock);
}

unsigned variables_get(struct buf *out)
{
	unsigned now;

	pthread_mutex_lock(&lock);
	buf_puts(out, object.len ? object.data : "{}");
	now = version;
	pthread_mutex_unlock(&lock);
	return now;
}
