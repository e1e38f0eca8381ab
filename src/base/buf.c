/*
 * Growing buffers. In: bytes. Out: one allocation. An allocation that fails marks the buffer, later
 * additions are dropped, and the caller that takes the result sees NULL (or checks `failed`):
 * callers add freely and check once.
 */
#include "base/buf.h"

#include <stdarg.h>
#include <string.h>

bool buf_reserve(struct buf *b, size_t more)
{
	size_t need, cap = b->cap ? b->cap : 256;
	char *grown;

	if (b->failed || __builtin_add_overflow(b->len, more, &need) ||
	    __builtin_add_overflow(need, 1, &need)) {
		b->failed = true;
		return false;
	}
	if (need <= b->cap)
		return true;
	while (cap < need)
		if (__builtin_mul_overflow(cap, 2, &cap)) {
			b->failed = true;
			return false;
		}
	grown = realloc(b->data, cap);
	if (!grown) {
		b->failed = true;
		return false;
	}
	b->data = grown;
	b->cap = cap;
	return true;
}

void buf_free(struct buf *b)
{
	free(b->data);
	*b = (struct buf){ 0 };
}

void buf_add(struct buf *b, const void *bytes, size_t n)
{
	if (!buf_reserve(b, n))
		return;
	if (n)
		memcpy(b->data + b->len, bytes, n);
	b->len += n;
	b->data[b->len] = '\0';
}

void buf_puts(struct buf *b, const char *s)
{
	buf_add(b, s, strlen(s));
}

void buf_printf(struct buf *b, const char *format, ...)
{
	char text[256]; /* most are short: to format takes longer than to copy */
	va_list ap, again;
	int n;

	va_start(ap, format);
	va_copy(again, ap);
	n = vsnprintf(text, sizeof(text), format, ap);
	va_end(ap);
	if (n < 0)
		b->failed = true;
	else if ((size_t)n < sizeof(text))
		buf_add(b, text, (size_t)n);
	else if (buf_reserve(b, (size_t)n)) {
		vsnprintf(b->data + b->len, (size_t)n + 1, format, again);
		b->len += (size_t)n;
	}
	va_end(again);
}

const char *buf_text(const struct buf *b)
{
	return b->data ? b->data : "";
}

char *buf_take(struct buf *b)
{
	char *text;

	buf_add(b, "", 0);
	if (b->failed) {
		buf_free(b);
		return NULL;
	}
	text = b->data;
	*b = (struct buf){ 0 };
	return text;
}

void strv_free(struct strv *v)
{
	for (size_t i = 0; i < v->len; i++)
		free(v->items[i]);
	free(v->items);
	*v = (struct strv){ 0 };
}

void strv_take(struct strv *v, char *s)
{
	if (!s) {
		v->failed = true;
		return;
	}
	if (v->len + 2 > v->cap) {
		size_t cap = v->cap ? v->cap * 2 : 8;
		char **grown = reallocarray(v->items, cap, sizeof(*grown));

		if (!grown) {
			v->failed = true;
			free(s);
			return;
		}
		v->items = grown;
		v->cap = cap;
	}
	v->items[v->len++] = s;
	v->items[v->len] = NULL;
}

void strv_add(struct strv *v, const char *s)
{
	strv_take(v, strdup(s));
}

void strv_addf(struct strv *v, const char *format, ...)
{
	char text[256];
	va_list ap, again;
	char *s = NULL;
	int n;

	va_start(ap, format);
	va_copy(again, ap);
	n = vsnprintf(text, sizeof(text), format, ap);
	va_end(ap);
	if (n >= 0 && (size_t)n < sizeof(text))
		s = strdup(text);
	else if (n >= 0 && vasprintf(&s, format, again) < 0)
		s = NULL;
	va_end(again);
	strv_take(v, s);
}

bool strv_has(const struct strv *v, const char *s)
{
	for (size_t i = 0; i < v->len; i++)
		if (strcmp(v->items[i], s) == 0)
			return true;
	return false;
}

static int compare_strings(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

void strv_sort(struct strv *v)
{
	if (v->len)
		qsort(v->items, v->len, sizeof(*v->items), compare_strings);
}
