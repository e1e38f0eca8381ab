/* A byte buffer that grows, and a list of strings. Out of memory is remembered and checked once, at
 * the end. */
#ifndef WARD_BASE_BUF_H
#define WARD_BASE_BUF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct buf {
	char *data; /* always NUL-terminated once something was added; owned */
	size_t len;
	size_t cap;
	bool failed; /* an allocation failed: the content is incomplete */
};

struct strv {
	char **items; /* NULL-terminated once something was added; owned, as is each string */
	size_t len;
	size_t cap;
	bool failed;
};

#define auto_buf __attribute__((cleanup(buf_free))) struct buf
#define auto_strv __attribute__((cleanup(strv_free))) struct strv

void buf_free(struct buf *b);
/* Makes room for that many bytes behind b->len. False: out of memory. */
bool buf_reserve(struct buf *b, size_t more);
/* Appends n bytes. */
void buf_add(struct buf *b, const void *bytes, size_t n);
/* Appends a string. */
void buf_puts(struct buf *b, const char *s);
/* Appends formatted text. */
void buf_printf(struct buf *b, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* The text so far, "" when empty; borrowed. */
const char *buf_text(const struct buf *b);
/* Hands the text to the caller (NULL when an allocation failed); the buffer is empty again. */
must_check char *buf_take(struct buf *b);

void strv_free(struct strv *v);
/* Appends a copy of s. */
void strv_add(struct strv *v, const char *s);
/* Appends formatted text. */
void strv_addf(struct strv *v, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Appends s itself; takes it. */
void strv_take(struct strv *v, char *s);
/* Whether the list holds s. */
bool strv_has(const struct strv *v, const char *s);
/* Sorts by bytes. */
void strv_sort(struct strv *v);

#endif
