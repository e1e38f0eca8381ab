/* Words for messages and documents: nothing that a file holds reaches a terminal unescaped. Pure functions. */
#ifndef WARD_POLICY_TEXT_H
#define WARD_POLICY_TEXT_H

#include "base/buf.h"

/* Appends s quoted for a message: control characters and broken UTF-8 escaped, long text cut. */
void text_show(struct buf *out, const char *s, size_t n);
/* Appends s escaped in the same way, without quotes and uncut: a file's name. */
void text_name(struct buf *out, const char *s);
/* Appends s as a YAML scalar: plain where every reader takes it for the same string, else quoted. */
void text_scalar(struct buf *out, const char *s);

#endif
